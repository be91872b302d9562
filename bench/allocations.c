/* Counts what Python's object and memory allocators are asked for, except by threads that ask to be left out.
   Loaded by bench/allocations.py; needs no header of Python's: this is the layout of PyMemAllocatorEx, PEP 445. */
#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} Allocator;

enum { MEM = 1, OBJ = 2 };
extern void PyMem_GetAllocator(int domain, Allocator *allocator);
extern void PyMem_SetAllocator(int domain, Allocator *allocator);

static Allocator original[3];
static volatile uint64_t calls, bytes;
static __thread int left_out;

static void count(size_t size) {
    if (!left_out) { /* the interpreter's lock is held */
        calls++;
        bytes += size;
    }
}

static void *counted_malloc(void *ctx, size_t size) {
    Allocator *to = ctx;
    count(size);
    return to->malloc(to->ctx, size);
}

static void *counted_calloc(void *ctx, size_t number, size_t size) {
    Allocator *to = ctx;
    count(number * size);
    return to->calloc(to->ctx, number, size);
}

static void *counted_realloc(void *ctx, void *old, size_t size) {
    Allocator *to = ctx;
    count(size);
    return to->realloc(to->ctx, old, size);
}

static void passed_free(void *ctx, void *old) {
    Allocator *to = ctx;
    to->free(to->ctx, old);
}

void begin(void) {
    for (int domain = MEM; domain <= OBJ; domain++) {
        PyMem_GetAllocator(domain, &original[domain]);
        Allocator counting = {&original[domain], counted_malloc, counted_calloc, counted_realloc, passed_free};
        PyMem_SetAllocator(domain, &counting);
    }
}

void leave_this_thread_out(void) { left_out = 1; }
uint64_t calls_so_far(void) { return calls; }
uint64_t bytes_so_far(void) { return bytes; }
