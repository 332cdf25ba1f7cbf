//! Calls of slow paths: what an expansion does for the few operands that its short path rejects is
//! a function of its own, one for all places of a kernel.
//!
//! A slow path is a helper with the column `slow_path`, the number of its registers. It takes its
//! arguments in adjacent registers from R4 on and returns its result there; R2 has the low word of
//! the return address, whose high word is zero because code is never that long. It changes few
//! registers, so a caller keeps its values where they are.

use crate::ori::mods::*;
use crate::ori::{Code, Convention, File, Operand, Symbol};
use crate::tables::helpers::Helper;
use crate::tables::{Op, Role};

/// First register of the arguments, and of the result, as in the calling convention of functions.
const FIRST: u16 = 4;
/// The return address.
pub(crate) const RETURN_ADDRESS: [u16; 2] = [2, 3];

impl Code {
    /// The helper of a name, if the function may call its slow path.
    pub(super) fn slow_path(&self, name: &str) -> Option<&'static Helper> {
        if !self.f.attributes().slow_paths || self.f.attributes().convention == Convention::SlowPath {
            return None;
        }
        Helper::by_name(name).filter(|helper| helper.family().slow_path > 0)
    }

    /// Emits the common path for `p` false and the rare path for `p` true: a call of the slow path
    /// of this name, or `rare` where none may be called. A slow path itself takes the rare path.
    pub(super) fn seldom(
        &mut self,
        p: Operand,
        call: (&str, &[Operand], Operand),
        rare: impl FnOnce(&mut Code),
        often: impl FnOnce(&mut Code),
    ) {
        if self.f.attributes().convention == Convention::SlowPath {
            return rare(self);
        }
        let (name, arguments, d) = call;
        let Some(helper) = self.slow_path(name) else { return self.either(p, rare, often) };
        let mut all_words =
            |values: &[Operand]| -> Vec<Operand> { values.iter().flat_map(|value| self.value_words(*value)).collect() };
        let (arguments, d) = (all_words(arguments), all_words(&[d]));
        self.either(p, |code| code.call_slow_path(helper, &arguments, &d), often);
    }

    /// The words of a value of 32 or 64 bits.
    fn value_words(&mut self, value: Operand) -> Vec<Operand> {
        if value.as_vector().is_some() { self.words(value).to_vec() } else { vec![value] }
    }

    /// Calls a slow path with the words of its arguments; `d` are the words of the result.
    pub(super) fn call_slow_path(&mut self, helper: &Helper, arguments: &[Operand], d: &[Operand]) {
        let mut fixed = |count: usize| -> Vec<Operand> {
            (0..count as u16).map(|n| Operand::reg(self.f.new_fixed(File::R, FIRST + n))).collect()
        };
        let (mut uses, defs) = (fixed(arguments.len()), fixed(d.len()));
        for (to, argument) in uses.iter().zip(arguments) {
            self.copy(*to, *argument);
        }
        let back = Operand::reg(self.f.new_fixed(File::R, RETURN_ADDRESS[0]));
        let behind = self.f.symbol(Symbol::Return { high: false });
        self.put(Op::MOV, &[], &[(Role::D, back), (Role::A, behind)]);
        uses.push(back);
        let place = self.f.symbol(Symbol::SlowPath(helper.id));
        let call = self.put(Op::CALL, &[MODE_REL, NOINC], &[(Role::Target, place)]);
        self.f.set_extras(call, &uses, &defs);
        for (to, from) in d.iter().zip(defs) {
            self.copy(*to, from);
        }
    }
}
