//! Memory dependence: which memory operations must stay in order.
//!
//! Two accesses may be reordered if both only read, if their address spaces are disjoint and
//! neither is generic, if their byte ranges off the same base registers are disjoint, or if one
//! reads memory that the program never writes. Volatile, strong and atomic accesses, and the first
//! access after a reconvergence point, are never reordered, but with local memory: no other thread
//! sees that. Reloads of spilled values pass copies to shared memory, as ptxas has them.

use crate::ori::{Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role, Says};
use smallvec::SmallVec;

/// The order of a read of what nothing writes meanwhile; a greater one is kept among accesses.
pub const CONSTANT: u8 = 1;

/// Registers, by number, each with the position that wrote it.
pub type Base = SmallVec<[(u32, usize); 3]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Global,
    Shared,
    Local,
    /// Global and shared: a copy from one to the other.
    Copy,
    /// Any address space: generic.
    Any,
}

/// One memory access.
#[derive(Clone, Debug)]
pub struct Memory {
    space: Space,
    writes: bool,
    ordered: bool,
    /// Base registers of its address, each with the position that wrote it, and the byte range
    /// relative to them.
    base: Base,
    bytes: Option<(i64, i64)>,
}

impl Memory {
    /// The access of an instruction; `None` if memory order does not matter for it. `written`
    /// returns the position that last wrote a register.
    pub fn of(function: &Function, inst: InstId, mut written: impl FnMut(VReg) -> usize) -> Option<Memory> {
        Memory::with_base(function, inst, |operand, base| {
            function.for_each_reg(operand, |reg| base.push((reg.as_u32(), written(reg))));
        })
    }

    /// As [`Memory::of`], where `registers` appends the registers of an operand of the address, by
    /// any numbers.
    pub fn with_base(
        function: &Function,
        inst: InstId,
        mut registers: impl FnMut(Operand, &mut Base),
    ) -> Option<Memory> {
        let data = &function[inst];
        let (reads, writes) = (data.op.has(Prop::ReadsMemory), data.op.has(Prop::WritesMemory));
        if !reads && !writes {
            return None;
        }
        let order = Mod::Mem.says(Says::Order, data.mods.get(Mod::Mem));
        // Reads of memory that the program promises not to write meanwhile.
        if !writes && order == CONSTANT {
            return None;
        }
        let spaces = [
            (Prop::GlobalMemory, Space::Global),
            (Prop::SharedMemory, Space::Shared),
            (Prop::LocalMemory, Space::Local),
        ];
        let space = match spaces.into_iter().find(|(prop, _)| data.op.has(*prop)) {
            Some((_, space)) => space,
            None if data.op == Op::LDGSTS => Space::Copy,
            None => Space::Any,
        };
        let ordered = data.ordered || data.op.has(Prop::OrderedAccess) || reads && writes || order > CONSTANT;
        let mut base = Base::new();
        for role in [Role::A, Role::Ub] {
            registers(function.arg(inst, role), &mut base);
        }
        let at = function.arg(inst, Role::Off);
        let at = if at == Operand::NULL { Some(0) } else { function.imm_value(at) };
        // Offsets are signed numbers of at most 32 bits.
        let bytes = at.and_then(|at| Some((i64::from(at as u32 as i32), size(function, inst)?)));
        Some(Memory { space, writes, ordered, base, bytes })
    }

    /// The access, ordered with everything, wherever that is.
    pub fn anywhere(self) -> Memory {
        Memory { space: Space::Any, ordered: true, ..self }
    }

    /// Whether it is of local memory, which only this thread accesses.
    pub fn is_local(&self) -> bool {
        self.space == Space::Local
    }

    /// Whether it is never reordered.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Whether it writes nothing and may be reordered with other reads.
    pub fn only_reads(&self) -> bool {
        !self.writes && !self.ordered
    }

    /// Its byte range relative to its base registers: first and number.
    pub fn bytes(&self) -> Option<(i64, i64)> {
        self.bytes
    }

    /// A read of another range off the same base registers.
    pub fn read_at(&self, first: i64, count: i64) -> Memory {
        Memory { writes: false, bytes: Some((first, count)), ..self.clone() }
    }

    /// Whether two accesses are of the same bytes.
    pub fn same(&self, other: &Memory) -> bool {
        self.space == other.space && self.base == other.base && self.bytes == other.bytes && self.bytes.is_some()
    }

    /// Whether the address spaces of two accesses are disjoint.
    pub fn apart_in_space(&self, other: &Memory) -> bool {
        match (self.space, other.space) {
            (Space::Any, _) | (_, Space::Any) => false,
            (Space::Copy, space) | (space, Space::Copy) => space == Space::Local,
            (one, two) => one != two,
        }
    }

    /// Whether one access is of local memory, in no order with others, and the other one is not.
    fn apart_from_local(&self, other: &Memory) -> bool {
        let free = |access: &Memory| access.space == Space::Local && !access.ordered;
        (free(self) || free(other)) && self.apart_in_space(other)
    }

    /// Whether two accesses may be reordered whatever their addresses are.
    pub fn apart(&self, other: &Memory) -> bool {
        let reads = !self.writes && !other.writes;
        self.apart_from_local(other) || !self.ordered && !other.ordered && (reads || self.apart_in_space(other))
    }

    /// Whether both read or both write global memory at known distances from one base.
    pub fn is_beside(&self, other: &Memory) -> bool {
        let same = self.base == other.base && self.writes == other.writes;
        same && [self, other].iter().all(|access| access.space == Space::Global && access.bytes.is_some())
    }

    /// Whether this access must stay after an earlier one.
    pub fn follows(&self, earlier: &Memory) -> bool {
        if self.apart_from_local(earlier) {
            return false;
        }
        if self.ordered || earlier.ordered {
            return true;
        }
        if !self.writes && !earlier.writes {
            return false;
        }
        if self.apart_in_space(earlier) {
            return false;
        }
        match (self.bytes, earlier.bytes) {
            (Some((a, m)), Some((b, n))) if self.base == earlier.base && self.space == earlier.space => {
                a < b + n && b < a + m
            }
            _ => true,
        }
    }
}

/// Whether an access is weak: neither volatile nor with a cache operator, an order or a scope.
pub fn is_weak(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    !data.ordered && data.mods.iter().all(|(kind, set)| set == 0 || matches!(kind, Mod::Size | Mod::E))
}

/// Size of an access in bytes; `None` if its modifiers do not tell.
pub fn size(function: &Function, inst: InstId) -> Option<i64> {
    let data = &function[inst];
    if data.op.has(Prop::WideAccess) {
        return Some(32);
    }
    if data.op.has(Prop::PlacesUnsaid) {
        return None;
    }
    Some(Mod::Size.says(Says::Bytes, data.mods.get(Mod::Size)).into())
}
