"""Reference pages of an API: ``reference`` says what stands on them, ``markdown`` and ``page`` how.

Text of a description is data: it is never Markdown structure, HTML or code, whatever it holds.
"""
