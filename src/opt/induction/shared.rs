//! Computes pointers that share one where they are read.

use super::{Pair, pair};
use crate::arrays::Each;
use crate::opt::copy_propagation::rename;
use crate::ori::cfg::Cfg;
use crate::ori::{Function, InstId, Operand, VReg};
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// A pair that becomes the sum of another one and the product of an instruction.
#[derive(Clone, Copy)]
pub struct Sum {
    pub old: Pair,
    pub init: InstId,
    pub from: Pair,
}

/// What becomes of the pointers that share one.
#[derive(Default)]
pub struct Shared {
    /// What a register of a pointer is computed from.
    pub from: SecondaryMap<VReg, Option<Sum>>,
    /// The instructions that advanced them.
    pub gone: SecondaryMap<InstId, bool>,
    pub any: bool,
}

/// The registers that hold pairs in the block at hand.
#[derive(Default)]
struct Names {
    of: SecondaryMap<VReg, Option<VReg>>,
    made: Vec<VReg>,
}

impl Shared {
    /// Computes the pairs in every block that reads them, before the first reader.
    pub fn rewrite(&self, function: &mut Function, cfg: &Cfg) {
        let mut names = Names::default();
        for block in &cfg.rpo {
            names.made.drain(..).for_each(|reg| names.of[reg] = None);
            let insts = std::mem::take(&mut function[*block]);
            let mut out = Vec::with_capacity(insts.len());
            for inst in insts.into_iter().filter(|inst| !self.gone[*inst]) {
                if function[inst].op != Op::PHI {
                    self.prepare(function, inst, &mut names, &mut out);
                }
                out.push(inst);
            }
            function[*block] = out;
        }
    }

    /// Computes what an instruction reads, and lets it read that.
    fn prepare(&self, function: &mut Function, inst: InstId, names: &mut Names, out: &mut Vec<InstId>) {
        let mut wanted: SmallVec<[Sum; 2]> = SmallVec::new();
        function.for_each_use(inst, |reg| wanted.extend(self.from[reg]));
        for Sum { old, init, from } in wanted {
            if names.of[old[0]].is_none() {
                let new = again(function, init, from, old, function[inst].line);
                // Its index may be one of these too.
                self.prepare(function, new, names, out);
                out.push(new);
                let made = pair(function, new, Role::D).unwrap_or(old);
                names.made.extend(old);
                old.iter().zip(made).for_each(|(old, made)| names.of[*old] = Some(made));
            }
        }
        rename(function, &names.of, inst);
    }
}

/// The product of an instruction added to a pair, in registers like the old ones.
fn again(function: &mut Function, init: InstId, from: Pair, old: Pair, line: u32) -> InstId {
    let new = function.make_with(Op::IMAD_WIDE, &SmallVec::<[Operand; 8]>::from(function.args(init)));
    let fresh = old.each(|reg| function.new_like(reg));
    for (role, regs) in [(Role::C, from), (Role::D, fresh)] {
        let vector = function.vector(&regs);
        let operand = function.arg(init, role).with_vector(vector);
        function.set_arg(new, role, operand);
    }
    (function[new].mods, function[new].line) = (function[init].mods, line);
    new
}
