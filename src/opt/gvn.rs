//! Global value numbering: replaces uses of a pure instruction by the results of an equal one that
//! dominates it.
//!
//! Walks the dominator tree with a hash table (dominator-scoped CSE). Only unguarded operations
//! with the property `pure` whose operands mean the same everywhere take part, loads that the
//! program says read what nothing writes while the kernel runs, and reads of special registers that
//! keep their values. Registers with the same constant
//! count as one, and the sources of a commutative operation have no order; constants themselves are
//! left to the operands that encode them. PHIs of one block with the same inputs are one. The
//! repetitions are left for dead-code elimination.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure, reads_kept};
use crate::arrays::Each;
use crate::opt::copy_propagation::{free_pair, rename};
use crate::ori::cfg::Dominators;
use crate::ori::commute::says_which;
use crate::ori::hash::{Quick, QuickMap};
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (cfg, dominators) = (cx.cfg(), cx.dominators());
    let function = &mut *cx.function;
    let mut children: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in &cfg.rpo {
        if let Some(parent) = dominators.parent(*block) {
            children[parent].push(*block);
        }
    }
    let mut known: QuickMap<u64, (InstId, Block)> = QuickMap::default();
    let mut source: SecondaryMap<VReg, Option<VReg>> = table(function.regs().len());
    let same = constants(function, &cfg.rpo);
    // Each block, then all that it dominates.
    let mut work = vec![function.entry()];
    while let Some(block) = work.pop() {
        enter(function, &dominators, block, &same, &mut known, &mut source);
        work.extend(children[block].iter());
    }
    // Inputs of PHIs may come from blocks that were visited later.
    for block in &cfg.rpo {
        for i in 0..function[*block].len() {
            let inst = function[*block][i];
            if function[inst].op != Op::PHI {
                break;
            }
            rename(function, &source, inst);
        }
    }
}

/// Numbers the instructions of one block.
fn enter(
    function: &mut Function,
    dominators: &Dominators,
    block: Block,
    same: &Same,
    known: &mut QuickMap<u64, (InstId, Block)>,
    source: &mut SecondaryMap<VReg, Option<VReg>>,
) {
    let phis = function[block].iter().take_while(|inst| function[**inst].op == Op::PHI).count();
    equal_phis(function, &function[block][..phis], same, source);
    for i in phis..function[block].len() {
        let inst = function[block][i];
        rename(function, source, inst);
        let Some(key) = key(function, same, inst) else { continue };
        match known.get(&key).copied() {
            Some((first, from)) if dominators.dominates(from, block) && alike(function, same, first, inst) => {
                repeat(function, first, inst, source);
            }
            _ => {
                known.insert(key, (inst, block));
            }
        }
    }
}

/// Finds PHIs of a block that get the same value on each way: an input that is the PHI itself is
/// the value that it had.
fn equal_phis(function: &Function, phis: &[InstId], same: &Same, source: &mut SecondaryMap<VReg, Option<VReg>>) {
    let mut known: QuickMap<SmallVec<[Input; 4]>, InstId> = QuickMap::default();
    for phi in phis.iter().filter(|_| phis.len() > 1) {
        let d = function.args(*phi)[0];
        let value = |operand: Operand| match operand.as_reg() {
            _ if operand == d => Input::Itself,
            Some(reg) => {
                let reg = source[reg].unwrap_or(reg);
                Input::Value(operand.with_reg(same[reg].unwrap_or(reg)))
            }
            None => Input::Value(operand),
        };
        let ways = function.args(*phi)[1..].chunks(2);
        let file = d.as_reg().map(|reg| function[reg].file);
        let inputs = ways.flat_map(|way| [Input::Value(way[0]), value(way[1])]);
        let inputs = std::iter::once(Input::File(file)).chain(inputs).collect();
        match known.get(&inputs) {
            Some(first) => repeat(function, *first, *phi, source),
            None => {
                known.insert(inputs, *phi);
            }
        }
    }
}

/// A part of what a PHI is.
#[derive(PartialEq, Eq, Hash)]
enum Input {
    File(Option<File>),
    Itself,
    Value(Operand),
}

/// For each register with a constant, one register with the same constant.
type Same = SecondaryMap<VReg, Option<VReg>>;

/// Finds the registers that hold the same constant, wherever they are defined.
fn constants(function: &Function, blocks: &[Block]) -> Same {
    let mut same: Same = table(function.regs().len());
    let mut first: QuickMap<(u64, File), VReg> = QuickMap::default();
    for inst in blocks.iter().flat_map(|block| &function[*block]) {
        let (dst, src) = match function[*inst].op {
            Op::MOV => (function.arg(*inst, Role::D), function.arg(*inst, Role::A)),
            _ => continue,
        };
        let whole = function.arg(*inst, Role::Lanes).is_null() && src == src.plain() && is_pure(function, *inst);
        let value = match src.kind() {
            Kind::Zero => Some(0),
            Kind::Imm(_) => function.imm_value(src),
            _ => None,
        };
        if let (true, Some(value), Some(reg)) = (whole, value, dst.as_reg().filter(|reg| is_free(function, *reg))) {
            same[reg] = Some(*first.entry((value, function[reg].file)).or_insert(reg));
        }
    }
    same
}

/// The registers of an operand, those with constants by their representatives.
fn registers(function: &Function, same: &Same, operand: Operand) -> SmallVec<[VReg; 4]> {
    let mut regs = SmallVec::new();
    function.for_each_reg(operand, |reg| regs.push(same[reg].unwrap_or(reg)));
    regs
}

/// A hash of an operand.
fn number(function: &Function, same: &Same, operand: Operand) -> u64 {
    let mut hash = Quick::default();
    match operand.kind() {
        Kind::Reg(_) | Kind::Vector(_) => {
            operand.with_reg(VReg::new(0)).hash(&mut hash);
            registers(function, same, operand).iter().for_each(|reg| hash.write_u64(reg.index() as u64));
        }
        _ => operand.hash(&mut hash),
    }
    hash.finish()
}

/// Whether two operands have the same value.
fn equal(function: &Function, same: &Same, one: Operand, two: Operand) -> bool {
    let regs = |operand: Operand| matches!(operand.kind(), Kind::Reg(_) | Kind::Vector(_));
    let modifiers = |operand: Operand| operand.with_reg(VReg::new(0));
    one == two
        || regs(one)
            && regs(two)
            && modifiers(one) == modifiers(two)
            && registers(function, same, one) == registers(function, same, two)
}

/// The indices of the first two sources, if they have no order.
fn unordered(function: &Function, inst: InstId) -> Option<[usize; 2]> {
    let op = function[inst].op;
    let mods = &function[inst].mods;
    let alike = mods.get(Mod::SwzA) == mods.get(Mod::SwzB);
    let swaps = op.has(Prop::Commutative) && alike && !says_which(function, inst);
    let [a, b] = [Role::A, Role::B].each(|role| op.role_index(role));
    swaps.then_some([a?, b?])
}

/// A hash of what determines the results of a pure instruction; `None` if an operand depends on the
/// position.
fn key(function: &Function, same: &Same, inst: InstId) -> Option<u64> {
    let data = &function[inst];
    let kept = reads_kept(function, inst);
    if !(is_pure(function, inst) || reads_constants(function, inst) || kept) || data.op == Op::MOV {
        return None;
    }
    let mut steady = true;
    let mut numbers: SmallVec<[u64; 6]> = SmallVec::new();
    let descriptor = data.op.role_index(Role::Desc);
    for (i, operand) in function.args(inst).iter().enumerate() {
        // The descriptor of memory is in one place throughout.
        let fixed = descriptor == Some(i);
        function.for_each_reg(*operand, |reg| steady &= fixed || is_free(function, reg));
        steady &= !matches!(operand.kind(), Kind::Label(_) | Kind::Symbol(_));
        steady &= kept || !matches!(operand.kind(), Kind::Special(_));
        let read = function.direction(inst, i) != Direction::Def;
        numbers.push(if read { number(function, same, *operand) } else { 0 });
    }
    if let Some([a, b]) = unordered(function, inst).filter(|[a, b]| numbers[*a] > numbers[*b]) {
        numbers.swap(a, b);
    }
    let mut hash = Quick::default();
    hash.write_u64(data.op as u64);
    data.mods.iter().for_each(|(kind, value)| hash.write_u64(kind as u64 | u64::from(value) << 32));
    numbers.iter().for_each(|number| hash.write_u64(*number));
    steady.then(|| hash.finish())
}

/// Whether an instruction is an unguarded load of memory that does not change (`ld.global.nc`).
fn reads_constants(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    data.op == Op::LDG && data.guard.is_null() && !data.ordered && data.mods.get(Mod::Mem) == value::mem::CONSTANT
}

/// Whether two pure instructions compute the same results, and the first has every result that the
/// second has.
fn alike(function: &Function, same: &Same, first: InstId, again: InstId) -> bool {
    let (one, two) = (&function[first], &function[again]);
    let (these, those) = (function.args(first), function.args(again));
    if one.op != two.op || one.mods != two.mods || these.len() != those.len() {
        return false;
    }
    let agree = |i: usize, j: usize| match function.direction(again, i) {
        Direction::Def => these[i].is_null() == those[i].is_null(),
        _ => equal(function, same, these[i], those[j]),
    };
    let straight = (0..those.len()).all(|i| agree(i, i));
    straight
        || unordered(function, again).is_some_and(|[a, b]| {
            let other = |i: usize| {
                if i == a {
                    b
                } else if i == b {
                    a
                } else {
                    i
                }
            };
            (0..those.len()).all(|i| agree(i, other(i)))
        })
}

/// Records that the results of an instruction equal those of an earlier one.
fn repeat(function: &Function, first: InstId, again: InstId, source: &mut SecondaryMap<VReg, Option<VReg>>) {
    let results = |inst| {
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_def(inst, |reg| regs.push(reg));
        regs
    };
    let pairs: SmallVec<[(VReg, VReg); 4]> = results(again).into_iter().zip(results(first)).collect();
    if pairs.iter().all(|(d, s)| free_pair(function, *d, *s)) {
        pairs.into_iter().for_each(|(d, s)| source[d] = Some(s));
    }
}
