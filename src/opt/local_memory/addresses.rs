//! Addresses in the function's frame: which registers hold them, and which accesses use them.
//!
//! A walk in reverse postorder from the stack pointer through copies and sums, and through the sums
//! with the window of local memory that make generic addresses. What a PHI joins is not followed.

use crate::analysis::def_use::{DefUse, is_free, is_pure};
use crate::arrays::Each;
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// What a register has to do with an address in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A local address, or the low word of a generic one: the bytes above the stack pointer, if
    /// they are known.
    Low { generic: bool, at: Option<i64> },
    /// The high word of a generic address.
    High,
    /// A carry between the two words.
    Carry,
    /// A word of the generic address at which local memory starts: low or high.
    Window { high: bool },
}

/// The registers of a function that hold parts of addresses in its frame.
pub struct Addresses {
    pub parts: SecondaryMap<VReg, Option<Part>>,
}

impl Addresses {
    /// Finds them, where `insts` lists each definition before its uses.
    pub fn new(function: &Function, def_use: &DefUse, sp: VReg, insts: impl Iterator<Item = InstId>) -> Addresses {
        let mut found = Addresses { parts: table(function.regs().len()) };
        found.parts[sp] = Some(Part::Low { generic: false, at: Some(0) });
        for inst in insts {
            let copies = function[inst].op == Op::COPY && function[inst].guard.is_null();
            if copies || is_pure(function, inst) {
                found.instruction(function, def_use, inst);
            }
        }
        found
    }

    /// What an operand without modifiers is.
    pub fn part(&self, operand: Operand) -> Option<Part> {
        operand.as_reg().filter(|_| operand == operand.plain()).and_then(|reg| self.parts[reg])
    }

    fn set(&mut self, function: &Function, operand: Operand, part: Part) {
        if let Some(reg) = operand.as_reg().filter(|reg| is_free(function, *reg)) {
            self.parts[reg] = Some(part);
        }
    }

    fn instruction(&mut self, function: &Function, def_use: &DefUse, inst: InstId) {
        let d = function.arg(inst, Role::D);
        match function[inst].op {
            Op::LDC => self.window(function, inst, d),
            op if op.has(Prop::Copies) => {
                let whole = function.arg(inst, Role::Lanes).is_null();
                if let Some(part) = self.part(function.arg(inst, Role::A)).filter(|_| whole) {
                    self.set(function, d, part);
                }
            }
            Op::IADD3 if function[inst].mods.get(Mod::X) == value::x::X => self.high_sum(function, inst, d),
            Op::IADD3 => self.low_sum(function, def_use, inst, d),
            Op::IMAD_WIDE => self.product(function, inst, d),
            _ => {}
        }
    }

    fn window(&mut self, function: &Function, inst: InstId, d: Operand) {
        let Some(window) = function.target().info().map(|info| info.local_window) else { return };
        let Kind::Const { bank: 0, offset } = function.arg(inst, Role::C).kind() else { return };
        let whole = function.arg(inst, Role::A).is_null() && function[inst].mods.get(Mod::Size) == 0;
        let at = u32::from(offset).wrapping_sub(window);
        if whole && matches!(at, 0 | 4) {
            self.set(function, d, Part::Window { high: at == 4 });
        }
    }

    /// A sum of low words: an address and a number of bytes.
    fn low_sum(&mut self, function: &Function, def_use: &DefUse, inst: InstId, d: Operand) {
        let (mut address, mut windows, mut bytes) = (None, 0, Some(0i64));
        for role in [Role::A, Role::B, Role::C] {
            let operand = function.arg(inst, role);
            let sign = if operand.neg() { -1 } else { 1 };
            match self.part(operand.plain()) {
                Some(Part::Low { generic, at }) if address.is_none() && sign == 1 => address = Some((generic, at)),
                Some(Part::Window { high: false }) => windows += sign,
                Some(_) => return,
                None => {
                    let known = def_use.known(function, operand.plain()).filter(|_| !operand.not());
                    bytes = bytes.zip(known).map(|(sum, bits)| sum + sign * i64::from(bits as i32));
                }
            }
        }
        let Some((generic, at)) = address else { return };
        let generic = match (generic, windows) {
            (generic, 0) => generic,
            (false, 1) => true,
            (true, -1) => false,
            _ => return,
        };
        let carries = [Role::Pu, Role::Pv].each(|role| function.arg(inst, role));
        if !carries[1].is_null() || !function.arg(inst, Role::Pp).is_null() {
            return;
        }
        let at = at.zip(bytes).map(|(at, bytes)| at + bytes);
        self.set(function, d, Part::Low { generic, at });
        self.set(function, carries[0], Part::Carry);
    }

    /// A sum of high words, with the carry of low words that are an address.
    fn high_sum(&mut self, function: &Function, inst: InstId, d: Operand) {
        let other = function.arg(inst, Role::Pq);
        let carried = self.part(function.arg(inst, Role::Pp)) == Some(Part::Carry);
        let alone = (other.is_null() || other == Operand::never())
            && [Role::Pu, Role::Pv].into_iter().all(|role| function.arg(inst, role).is_null());
        let high = [Role::A, Role::B, Role::C].into_iter().filter(|role| {
            matches!(self.part(function.arg(inst, *role)), Some(Part::High | Part::Window { high: true }))
        });
        if carried && alone && high.count() == 1 {
            self.set(function, d, Part::High);
        }
    }

    /// A product added to an address.
    fn product(&mut self, function: &Function, inst: InstId, d: Operand) {
        let words = |operand: Operand| match operand.kind() {
            Kind::Vector(vector) if operand == operand.plain() => {
                <[VReg; 2]>::try_from(function.vector_regs(vector)).ok()
            }
            _ => None,
        };
        let (Some([low, high]), Some([to_low, to_high])) = (words(function.arg(inst, Role::C)), words(d)) else {
            return;
        };
        if let (Some(Part::Low { generic: true, .. }), Some(Part::High)) = (self.parts[low], self.parts[high]) {
            self.set(function, Operand::reg(to_low), Part::Low { generic: true, at: None });
            self.set(function, Operand::reg(to_high), Part::High);
        }
    }

    /// The place of an access in the frame, if its address is one: whether the address is generic,
    /// and the bytes above the stack pointer, if they are known.
    pub fn of_access(&self, function: &Function, inst: InstId) -> Option<(bool, Option<i64>)> {
        let op = function[inst].op;
        let address = function.arg(inst, Role::A);
        let plain = address == address.plain() && function.arg(inst, Role::Ub).is_null();
        let offset = function.arg(inst, Role::Off);
        let offset = if offset.is_null() { 0 } else { i64::from(function.imm_value(offset)? as u32 as i32) };
        let place = match (op, address.kind()) {
            (op, Kind::Reg(reg)) if op.has(Prop::LocalMemory) => match self.parts[reg]? {
                Part::Low { generic: false, at } => (false, at),
                _ => return None,
            },
            (Op::LD | Op::ST, Kind::Vector(vector)) => match *function.vector_regs(vector) {
                [low, high] => match (self.parts[low]?, self.parts[high]?) {
                    (Part::Low { generic: true, at }, Part::High) => (true, at),
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        plain.then_some((place.0, place.1.map(|at| at + offset)))
    }
}
