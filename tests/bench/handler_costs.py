"""What one request costs in the API alone: no socket, memory storage; microseconds of CPU each, by the least of ten
batches, and a profile.

python -m tests.bench.handler_costs [LINE …] [--profile]
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import time

from tests.bench.api_requests import LINES, answered, running_api

BATCHES = 10


async def main() -> None:
    async with running_api() as api:
        for name in [name for name in sys.argv[1:] if name in LINES] or LINES:
            make, rounds = LINES[name]
            requests = [make(number) for number in range(2 * rounds)]
            for request in requests[:rounds]:
                await answered(api, request)
            profile = cProfile.Profile(time.thread_time)
            if "--profile" in sys.argv:
                profile.enable()
            batch, least = rounds // BATCHES, float("inf")
            for first in range(rounds, 2 * rounds, batch):
                began = time.process_time()
                for request in requests[first : first + batch]:
                    await api.handle(request)
                least = min(least, (time.process_time() - began) / len(requests[first : first + batch]))
            print(f"{name:10s} {least * 1e6:8.1f} us")
            if "--profile" in sys.argv:
                profile.disable()
                pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    asyncio.run(main())
