/* The state of csmith's runtime: a variable of the file, or a member of a program that is a struct. */
uint32_t checksum = 0xffffffffu;

#ifndef STATE_IN_A_STRUCT
static
#endif
void add_to_checksum(uint64_t value)
{
    uint32_t sum = checksum ^ (uint32_t)value;
    sum = (sum << 7 | sum >> 25) * 0x9e3779b1u;
    checksum = sum ^ (uint32_t)(value >> 32);
}
