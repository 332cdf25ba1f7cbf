/* What csmith's programs want of their runtime, without a C library: integers, arithmetic that is defined for all
   operands, and a checksum. Both sides of a comparison are built with it, so that it need not compute what csmith's own
   does. A program for many threads is a struct (program.rs); STATE_IN_A_STRUCT leaves the state to csmith_state.h there. */
#ifndef RUNTIME
#define RUNTIME

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;

#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615UL

/* Sums, differences and products wrap around; a quotient or a shift without a value is the left operand. */
#define WRAPPING(name, sign, ty, op) \
    static ty safe_##name##_func_##ty##_##sign(ty a, ty b) { return (ty)((uint64_t)a op (uint64_t)b); }
#define SIGNED_QUOTIENT(name, ty, least, op) \
    static ty safe_##name##_func_##ty##_s_s(ty a, ty b) { return b == 0 || (a == least && b == -1) ? a : (ty)(a op b); }
#define UNSIGNED_QUOTIENT(name, ty, op) \
    static ty safe_##name##_func_##ty##_u_u(ty a, ty b) { return b == 0 ? a : (ty)(a op b); }
#define SHIFTS(ty, sign, un, bits, count, csign) \
    static ty safe_lshift_func_##ty##_##sign##_##csign(ty a, count n) \
    { return (uint32_t)n >= bits ? a : (ty)((un)a << (uint32_t)n); } \
    static ty safe_rshift_func_##ty##_##sign##_##csign(ty a, count n) \
    { return (uint32_t)n >= bits ? a : (ty)(a >> (uint32_t)n); }
#define OPERATIONS(n) \
    WRAPPING(add, s_s, int##n##_t, +) WRAPPING(sub, s_s, int##n##_t, -) WRAPPING(mul, s_s, int##n##_t, *) \
    WRAPPING(add, u_u, uint##n##_t, +) WRAPPING(sub, u_u, uint##n##_t, -) WRAPPING(mul, u_u, uint##n##_t, *) \
    SIGNED_QUOTIENT(div, int##n##_t, INT##n##_MIN, /) SIGNED_QUOTIENT(mod, int##n##_t, INT##n##_MIN, %) \
    UNSIGNED_QUOTIENT(div, uint##n##_t, /) UNSIGNED_QUOTIENT(mod, uint##n##_t, %) \
    SHIFTS(int##n##_t, s, uint##n##_t, n, int, s) SHIFTS(int##n##_t, s, uint##n##_t, n, unsigned, u) \
    SHIFTS(uint##n##_t, u, uint##n##_t, n, int, s) SHIFTS(uint##n##_t, u, uint##n##_t, n, unsigned, u) \
    static int##n##_t safe_unary_minus_func_int##n##_t_s(int##n##_t a) { return (int##n##_t)(0 - (uint64_t)a); } \
    static uint##n##_t safe_unary_minus_func_uint##n##_t_u(uint##n##_t a) { return (uint##n##_t)(0 - (uint64_t)a); }

OPERATIONS(8)
OPERATIONS(16)
OPERATIONS(32)
OPERATIONS(64)

static void copy_bytes(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const volatile char *)from)[i];
}
#define memcpy(to, from, n) copy_bytes((void *)(to), (const void *)(from), n)

#ifdef __cplusplus
#define NULL nullptr
#else
#define NULL ((void *)0)
#endif
#define main program_main
#define platform_main_begin()
#define platform_main_end(sum, flag) (checksum = (sum))
#define crc32_gentab()
#define crc32_context checksum
#define transparent_crc(value, name, flag) add_to_checksum((uint64_t)(value))
#define transparent_crc_bytes(value, n, name, flag)
#define strcmp(a, b) 1
#define printf(...)
#endif

#ifndef STATE_IN_A_STRUCT
static
#include "csmith_state.h"
#endif
