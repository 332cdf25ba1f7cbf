//! Local memory to registers, in SSA form: generic accesses to the function's own frame become
//! local ones, and words of a frame whose address goes nowhere become registers.
//!
//! An access of a generic address that is a sum with an address in the frame becomes LDL or STL: a
//! pointer that leaves its object may not be used. A word is promoted if only weak accesses of
//! whole words touch it, at constant places, and if nothing else reads an address in the frame: no
//! call, no PHI, no access with an index. Reads before any write give an undefined value, as the
//! memory does. The frame keeps its size.

mod addresses;
mod promotion;

use crate::analysis::PassCx;
use crate::analysis::memory_dependence::is_weak;
use crate::arrays::Each;
use crate::ori::hash::QuickMap;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Role};
use addresses::{Addresses, Part};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let Some(sp) = cx.function.stack_pointer() else {
        cx.unchanged = true;
        return;
    };
    let cfg = cx.cfg();
    let def_use = cx.def_use();
    let function = &mut *cx.function;
    let insts: Vec<InstId> = cfg.rpo.iter().flat_map(|block| &function[*block]).copied().collect();
    let mut moves = false;
    insts.iter().for_each(|inst| function.for_each_def(*inst, |reg| moves |= reg == sp));
    if moves {
        cx.unchanged = true;
        return;
    }
    let addresses = Addresses::new(function, &def_use, sp, insts.iter().copied());
    let twins = Twins::insert(function, &addresses, sp, &cfg.rpo);
    for inst in &insts {
        if let Some((true, at)) = addresses.of_access(function, *inst) {
            make_local(function, *inst, at, &twins, sp);
        }
    }
    promotion::run(function, &addresses, &insts, &cfg.rpo);
}

/// The local address beside each generic one whose place is not known.
struct Twins(QuickMap<VReg, Operand>);

impl Twins {
    /// Computes them after the low words of the generic addresses; those that nothing reads are
    /// left for dead-code elimination.
    fn insert(function: &mut Function, addresses: &Addresses, sp: VReg, blocks: &[Block]) -> Twins {
        let mut twins = Twins(QuickMap::default());
        for block in blocks {
            let insts = std::mem::take(&mut function[*block]);
            let mut out = Vec::with_capacity(insts.len());
            for inst in insts {
                out.push(inst);
                twins.beside(function, addresses, sp, inst, &mut out);
            }
            function[*block] = out;
        }
        twins
    }

    /// Appends what computes the twin of an instruction's result, if it has one.
    fn beside(&mut self, f: &mut Function, addresses: &Addresses, sp: VReg, inst: InstId, out: &mut Vec<InstId>) {
        let mut low = None;
        f.for_each_def(inst, |reg| {
            if addresses.parts[reg] == Some(Part::Low { generic: true, at: None }) {
                low = Some(reg);
            }
        });
        let Some(low) = low else { return };
        let line = f[inst].line;
        let (op, terms) = match f[inst].op {
            Op::IADD3 => (Op::IADD3, [Role::A, Role::B, Role::C].each(|role| f.arg(inst, role))),
            Op::IMAD_WIDE => {
                let base = f.arg(inst, Role::C).as_vector().map(|vector| f.vector_regs(vector)[0]);
                let Some(base) = base else { return };
                (Op::IMAD, [f.arg(inst, Role::A), f.arg(inst, Role::B), Operand::reg(base)])
            }
            // A copy.
            _ => (Op::IADD3, [f.arg(inst, Role::A), Operand::zero(), Operand::zero()]),
        };
        let mut own = [Operand::zero(); 3];
        for (to, term) in own.iter_mut().zip(terms) {
            *to = match term.as_reg().map(|reg| (reg, addresses.parts[reg])) {
                Some((_, Some(Part::Window { .. }))) => Operand::zero(),
                Some((reg, Some(Part::Low { generic: true, at: None }))) => self.0[&reg],
                Some((_, Some(Part::Low { generic: true, at: Some(at) }))) => {
                    let bytes = f.imm(u64::from(at as u32));
                    add(f, Op::IADD3, [Operand::reg(sp), bytes, Operand::zero()], line, out)
                }
                _ => term,
            };
        }
        let twin = add(f, op, own, line, out);
        self.0.insert(low, twin);
    }
}

/// Appends an operation of three words; returns its result.
fn add(function: &mut Function, op: Op, args: [Operand; 3], line: u32, out: &mut Vec<InstId>) -> Operand {
    let d = Operand::reg(function.new_reg(File::R));
    let inst = function.make(op);
    for (role, operand) in [(Role::D, d), (Role::A, args[0]), (Role::B, args[1]), (Role::C, args[2])] {
        function.set_arg(inst, role, operand);
    }
    function[inst].line = line;
    out.push(inst);
    d
}

/// Makes a generic access of the frame a local one.
fn make_local(function: &mut Function, inst: InstId, at: Option<i64>, twins: &Twins, sp: VReg) {
    let data = function[inst];
    let local = match data.op {
        Op::LD if function.arg(inst, Role::Pu).is_null() && function.arg(inst, Role::Pp).is_null() => Op::LDL,
        Op::ST => Op::STL,
        _ => return,
    };
    if !is_weak(function, inst) {
        return;
    }
    let low = function.arg(inst, Role::A).as_vector().map(|vector| function.vector_regs(vector)[0]);
    let (base, off) = match (at, low.and_then(|low| twins.0.get(&low).copied())) {
        (Some(at), _) => (Operand::reg(sp), function.imm(at as u64)),
        (None, Some(twin)) => (twin, function.arg(inst, Role::Off)),
        _ => return,
    };
    let new = function.make(local);
    for (role, operand) in [(Role::A, base), (Role::Off, off)] {
        function.set_arg(new, role, operand);
    }
    let moved = if local == Op::LDL { Role::D } else { Role::B };
    function.set_arg(new, moved, function.arg(inst, moved));
    function[new].mods.set(Mod::Size, data.mods.get(Mod::Size));
    // A generic load has a predicate as its first result, which no local one has.
    if let (Op::LDL, Some(old)) = (local, function.olds(inst).last().copied()) {
        function.set_olds(new, &[old]);
    }
    function[new].guard = data.guard;
    function[new].line = data.line;
    function[inst] = function[new];
}
