/* Evaluates the shader constants of a kernel before a launch, for a host that loads a cubin.
   The table is the section `.sassafras.patch.KERNEL` of the cubin; `src/cubin/patches.rs` says
   how its bytes are laid out. The words go into a copy of `.nv.constant2.KERNEL`, which must be in
   the cubin when the driver loads it. The caller vouches for `params`: all bytes of the parameters,
   as they stand in the kernel's parameter buffer. */
#include <stddef.h>
#include <stdint.h>

static uint32_t word_at(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t logic3(unsigned lut, uint32_t a, uint32_t b, uint32_t c) {
    uint32_t out = 0;
    for (int i = 0; i < 8; i++)
        if (lut >> i & 1)
            out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}

static uint32_t funnel(unsigned how, uint32_t low, uint32_t count, uint32_t high) {
    uint64_t pair = (uint64_t)high << 32 | low, out;
    uint32_t bits = how & 4 ? 64 : 32;
    count = how & 8 ? count & (bits - 1) : count < bits ? count : bits;
    if (!(how & 1))
        out = count > 63 ? 0 : pair << count;
    else if (how & 2 && high >> 31)
        out = ~(~pair >> (count > 63 ? 63 : count));
    else if (how & 2)
        out = pair >> (count > 63 ? 63 : count);
    else
        out = count > 63 ? 0 : pair >> count;
    return (uint32_t)(how & 16 ? out >> 32 : out);
}

static uint32_t divide(int is_signed, uint32_t a, uint32_t b) {
    if (b == 0)
        return UINT32_MAX;
    if (!is_signed)
        return a / b;
    uint32_t x = a >> 31 ? 0 - a : a, y = b >> 31 ? 0 - b : b;
    return (a ^ b) >> 31 ? 0 - x / y : x / y;
}

static uint32_t high_signed(uint32_t a, uint32_t b) {
    uint32_t high = (uint32_t)((uint64_t)a * b >> 32);
    return high - (a >> 31 ? b : 0) - (b >> 31 ? a : 0);
}

/* One program; returns 0 and the word, or -1 for a damaged program. */
static int evaluate(const unsigned char *p, size_t size, const unsigned char *params, size_t param_size,
                    const uint32_t sizes[6], uint32_t *result) {
    static const unsigned char takes[14] = {0, 0, 0, 0, 2, 3, 2, 2, 2, 1, 3, 3, 2, 2};
    static const unsigned char operands[14] = {0, 2, 1, 4, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0};
    uint32_t stack[16];
    size_t depth = 0;
    for (size_t at = 0; at < size;) {
        unsigned kind = p[at++];
        if (kind < 1 || kind > 13 || operands[kind] > size - at || takes[kind] > depth)
            return -1;
        uint32_t operand = 0, v[3] = {0, 0, 0}, out;
        for (unsigned i = 0; i < operands[kind]; i++)
            operand |= (uint32_t)p[at++] << 8 * i;
        depth -= takes[kind];
        for (unsigned i = 0; i < takes[kind]; i++)
            v[i] = stack[depth + i];
        switch (kind) {
        case 1:
            if (operand % 4 || param_size < 4 || operand > param_size - 4)
                return -1;
            out = word_at(params + operand);
            break;
        case 2:
            if (operand > 5)
                return -1;
            out = sizes[operand];
            break;
        case 3: out = operand; break;
        case 4: out = v[0] + v[1]; break;
        case 5: out = (uint32_t)(((uint64_t)v[0] + v[1] + v[2]) >> 32); break;
        case 6: out = v[0] * v[1]; break;
        case 7: out = (uint32_t)((uint64_t)v[0] * v[1] >> 32); break;
        case 8: out = high_signed(v[0], v[1]); break;
        case 9: out = ~v[0]; break;
        case 10: out = logic3(operand, v[0], v[1], v[2]); break;
        case 11: out = funnel(operand, v[0], v[1], v[2]); break;
        case 12: out = divide(0, v[0], v[1]); break;
        default: out = divide(1, v[0], v[1]); break;
        }
        if (depth == 16)
            return -1;
        stack[depth++] = out;
    }
    if (depth != 1)
        return -1;
    *result = stack[0];
    return 0;
}

/* Writes the words of a table into the bytes of its bank. `sizes` are the threads of a block and
   then the blocks of the grid, by axis. Returns the number of words, or -1 for a damaged table or a
   word outside of the bank; some words may then be written. */
long sassafras_patch(const unsigned char *table, size_t size, const unsigned char *params, size_t param_size,
                     const uint32_t sizes[6], unsigned char *bank, size_t bank_size) {
    if (size < 12 || word_at(table) != 0x31545053)
        return -1;
    uint32_t count = word_at(table + 8);
    size_t at = 12;
    for (uint32_t i = 0; i < count; i++) {
        if (size - at < 8)
            return -1;
        uint32_t offset = word_at(table + at), length = word_at(table + at + 4), word;
        at += 8;
        if (length > size - at || offset % 4 || bank_size < 4 || offset > bank_size - 4)
            return -1;
        if (evaluate(table + at, length, params, param_size, sizes, &word))
            return -1;
        for (int byte = 0; byte < 4; byte++)
            bank[offset + byte] = (unsigned char)(word >> 8 * byte);
        at += length;
    }
    return at == size ? (long)count : -1;
}
