/* Compiled functions take C stack and Python counts none of it, so deep recursion would end the process. Each compiled function begins
 * with KUBEWRIGHT_ROOM, which raises RecursionError where half of the thread's stack is used. The other half is for what Python does
 * below: its own C code stops at its own limit. */
#include <Python.h>
#include <stdint.h>
#if defined(_WIN32)
#include <intrin.h>
#include <windows.h>
#define KUBEWRIGHT_FRAME ((char *)_AddressOfReturnAddress())
#define KUBEWRIGHT_THREAD static __declspec(thread)
#else
#include <pthread.h>
#define KUBEWRIGHT_FRAME ((char *)__builtin_frame_address(0))
#define KUBEWRIGHT_THREAD static __thread
#endif

KUBEWRIGHT_THREAD char *kubewright_floor = (char *)UINTPTR_MAX; /* of this thread; not known until its first call */

static void kubewright_find_floor(void) {
    char *lowest = NULL;
    size_t size = 0;
#if defined(_WIN32)
    ULONG_PTR low, high;
    GetCurrentThreadStackLimits(&low, &high);
    lowest = (char *)low;
    size = high - low;
#elif defined(__APPLE__)
    size = pthread_get_stacksize_np(pthread_self());
    lowest = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
#else
    pthread_attr_t attributes;
    void *address;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &address, &size) == 0)
            lowest = (char *)address;
        pthread_attr_destroy(&attributes);
    }
#endif
    /* Where the system does not say: 128 KiB from here, a quarter of the smallest default stack. */
    kubewright_floor = lowest == NULL ? KUBEWRIGHT_FRAME - 131072 : lowest + size / 2;
}

static int kubewright_no_room(void) {
    if (kubewright_floor == (char *)UINTPTR_MAX)
        kubewright_find_floor();
    if (KUBEWRIGHT_FRAME >= kubewright_floor)
        return 0;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded in compiled code");
    return 1;
}

#define KUBEWRIGHT_ROOM(failed)                                      \
    if (KUBEWRIGHT_FRAME < kubewright_floor && kubewright_no_room()) \
        return failed;
