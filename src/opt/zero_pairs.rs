//! Zero pairs: two registers of a pair that become zero in one block are written by one CS2R.
//!
//! Runs after allocation, which decides what is a pair. The pair is written where the second zero
//! was, and only if nothing in between reads or writes the first.

use crate::analysis::PassCx;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::encoding::sr;
use crate::tables::{Op, Prop, Role};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &mut *cx.function;
    for block in function.layout().to_vec() {
        join(function, block);
    }
}

fn join(function: &mut Function, block: Block) {
    // The zeros that nothing has read since: place in the block by number of the register.
    let mut open: SortedMap<u16, (usize, VReg)> = SortedMap::new();
    let mut insts = function[block].clone();
    let mut gone = SortedSet::new();
    for (at, place) in insts.iter_mut().enumerate() {
        let inst = *place;
        let data = &function[inst];
        if data.op.has(Prop::Control) || data.op.has(Prop::Clobbers) {
            open.clear();
            continue;
        }
        let mut close = |reg: VReg| {
            if let Some(number) = function[reg].phys.filter(|_| !open.is_empty()) {
                open.remove(&number);
            }
        };
        function.for_each_use(inst, &mut close);
        function.for_each_def(inst, close);
        let Some((number, reg)) = zeroed(function, inst) else { continue };
        let Some((first, other)) = open.remove(&(number ^ 1)) else {
            open.insert(number, (at, reg));
            continue;
        };
        let words = if number % 2 == 0 { [reg, other] } else { [other, reg] };
        let pair = Operand::vector(function.vector(&words));
        let both = function.make(Op::CS2R_64);
        function.set_arg(both, Role::D, pair);
        function.set_arg(both, Role::S, Operand::special(sr::SRZ));
        function[both].line = function[inst].line;
        *place = both;
        gone.insert(first);
    }
    let mut at = 0..;
    insts.retain(|_| at.next().is_some_and(|at| !gone.contains(&at)));
    function[block] = insts;
}

/// The number of the general register that an instruction makes zero.
fn zeroed(function: &Function, inst: InstId) -> Option<(u16, VReg)> {
    let data = &function[inst];
    if data.op != Op::MOV || !data.guard.is_null() {
        return None;
    }
    let (d, a) = (function.arg(inst, Role::D), function.arg(inst, Role::A));
    let reg = d.as_reg().filter(|reg| function[*reg].file == File::R)?;
    let number = function[reg].phys?;
    let plain = a.kind() == Kind::Zero || function.imm_value(a) == Some(0);
    (plain && a == a.plain() && d == d.plain()).then_some((number, reg))
}
