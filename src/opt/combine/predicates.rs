//! Logic of predicates: PLOP3 of PLOP3 becomes one PLOP3, and PLOP3 of a comparison becomes the
//! comparison with the other predicate as its input.
//!
//! A definition is fused only into its single use, in the same block, so that no source lives
//! longer than the instruction saved is worth; but where more predicates are read than the file
//! has, comparisons are repeated. An inverted comparison is true where the comparison
//! is false, for NaN too. A predicate that is known, or is one input as it is, stays a PLOP3, which
//! copy propagation reads.

use crate::analysis::def_use::{DefUse, Fits, is_free, is_pure, rewrite};
use crate::arrays::Each;
use crate::ori::commute::inverted;
use crate::ori::operand::Kind;
use crate::ori::{Block, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Mods, Op, Prop, Role, value};
use smallvec::SmallVec;

/// The inputs of a truth table, the first one as the highest bit of a row's number.
type Leaves = SmallVec<[VReg; 4]>;

const INPUTS: [Role; 3] = [Role::Pa, Role::Pb, Role::Pc];

/// Predicates that may live at once beside those that are made of them.
const FEW: usize = 6;

/// Whether PLOP3 of a block read more predicates than live at once in the file. Comparisons of
/// integers are then repeated where they are read, which costs no more than the PLOP3: as in a grid
/// of masks, where each row is combined with each column.
pub fn is_crowded(function: &Function, def_use: &DefUse, block: Block) -> bool {
    let mut read: SmallVec<[VReg; 16]> = SmallVec::new();
    for inst in function[block].iter().filter(|inst| function[**inst].op == Op::PLOP3) {
        function.for_each_use(*inst, |reg| {
            let compared = def_use.def_of(function, reg).is_some_and(|maker| function[maker].op == Op::ISETP);
            if compared && read.len() <= FEW && def_use.uses(reg) > 1 && !read.contains(&reg) {
                read.push(reg);
            }
        });
    }
    read.len() > FEW
}

/// Fuses definitions of its inputs into a PLOP3, which may become a comparison; in a `crowded`
/// block also comparisons that others read.
pub fn fold(function: &mut Function, def_use: &mut DefUse, (block, at): (Block, usize), crowded: bool, fits: Fits) {
    let inst = function[block][at];
    if function[inst].op != Op::PLOP3 {
        return;
    }
    let here = |function: &Function, maker: InstId| function[block][..at].iter().rposition(|i| *i == maker);
    while merge(function, def_use, inst, here, fits) {}
    compare(function, def_use, inst, (here, crowded), fits);
}

/// Inputs of an unguarded PLOP3 with one result, and its table over them.
fn logic(function: &Function, inst: InstId) -> Option<(Leaves, u64)> {
    let lut = function.imm_value(function.arg(inst, Role::Lut))?;
    let alone = function[inst].op == Op::PLOP3 && is_pure(function, inst);
    let inputs = INPUTS.each(|role| function.arg(inst, role));
    let known = |o: &Operand| o.as_reg().is_some_and(|reg| is_free(function, reg)) || o.kind() == Kind::Zero;
    if !alone || !function.arg(inst, Role::Pv).is_null() || !inputs.iter().all(known) {
        return None;
    }
    let mut leaves = Leaves::new();
    for reg in inputs.iter().filter_map(|input| input.as_reg()) {
        if !leaves.contains(&reg) {
            leaves.push(reg);
        }
    }
    let table = table(&leaves, |is| {
        let truth = |o: &Operand| o.as_reg().is_none_or(is) != o.not();
        lut >> inputs.iter().fold(0, |row, input| row << 1 | u64::from(truth(input))) & 1 != 0
    });
    Some((leaves, table))
}

/// The result of a PLOP3 that is one of its inputs, as it is or inverted, and that input.
pub fn as_input(function: &Function, inst: InstId) -> Option<(VReg, Operand)> {
    if function[inst].op != Op::PLOP3 {
        return None;
    }
    let (leaves, table) = logic(function, inst)?;
    let [leaf] = leaves[..] else { return None };
    let d = function.arg(inst, Role::Pu).as_reg().filter(|reg| is_free(function, *reg))?;
    let input = match table {
        0b10 => Operand::reg(leaf),
        0b01 => Operand::reg(leaf).inverted(),
        _ => return None,
    };
    (function[d].file == function[leaf].file).then_some((d, input))
}

/// The truth table of a function of leaves.
fn table(leaves: &[VReg], function: impl Fn(&dyn Fn(VReg) -> bool) -> bool) -> u64 {
    (0..1u64 << leaves.len()).fold(0, |table, row| {
        let is = |reg: VReg| {
            let at = leaves.iter().position(|leaf| *leaf == reg);
            at.is_some_and(|at| row >> (leaves.len() - 1 - at) & 1 != 0)
        };
        table | u64::from(function(&is)) << row
    })
}

/// Whether a table is true for these values of its leaves.
fn look(leaves: &[VReg], table: u64, is: impl Fn(VReg) -> bool) -> bool {
    table >> leaves.iter().fold(0, |row, leaf| row << 1 | u64::from(is(*leaf))) & 1 != 0
}

/// PLOP3 of a PLOP3 that nothing else reads, if both together have at most three inputs.
fn merge(
    function: &mut Function,
    def_use: &mut DefUse,
    inst: InstId,
    here: impl Fn(&Function, InstId) -> Option<usize>,
    fits: Fits,
) -> bool {
    let Some((outer, lut)) = logic(function, inst) else { return false };
    for reg in &outer {
        let Some(maker) = def_use.single_use_def(function, *reg).filter(|m| here(function, *m).is_some()) else {
            continue;
        };
        let Some((inner, of_inner)) = logic(function, maker) else { continue };
        let mut leaves: Leaves = outer.iter().copied().filter(|leaf| leaf != reg).collect();
        inner.iter().for_each(|leaf| {
            if !leaves.contains(leaf) {
                leaves.push(*leaf);
            }
        });
        if leaves.is_empty() || leaves.len() > INPUTS.len() {
            continue;
        }
        let whole = table(&leaves, |is| {
            let made = look(&inner, of_inner, is);
            look(&outer, lut, |leaf| if leaf == *reg { made } else { is(leaf) })
        });
        if put(function, def_use, inst, &leaves, whole, fits) {
            return true;
        }
    }
    false
}

/// Gives a PLOP3 these inputs and this table over them.
fn put(function: &mut Function, def_use: &mut DefUse, inst: InstId, leaves: &[VReg], table: u64, fits: Fits) -> bool {
    let unread = INPUTS.len() - leaves.len();
    // Rows in which the unread inputs, which are true, are false do not occur.
    let lut = (0..8u64).fold(0, |lut, row| lut | (table >> (row >> unread) & 1) << row);
    let (before, old) = (DefUse::reads(function, inst), function[inst]);
    let lut = function.imm(lut);
    let mut args: SmallVec<[(Role, Operand); 8]> = INPUTS.iter().map(|role| (*role, Operand::always())).collect();
    args.iter_mut().zip(leaves).for_each(|(arg, leaf)| arg.1 = Operand::reg(*leaf));
    let kept = [Role::Pu, Role::Lut2].each(|role| (role, function.arg(inst, role)));
    args.extend(kept);
    args.push((Role::Lut, lut));
    rewrite(function, inst, Op::PLOP3, &args);
    let fitting = fits(function, inst);
    if fitting {
        def_use.update(function, inst, &before);
    } else {
        function[inst] = old;
    }
    fitting
}

/// PLOP3 of a comparison that nothing else reads and another predicate. Of two comparisons the
/// later one, whose sources need not live longer.
fn compare(
    function: &mut Function,
    def_use: &mut DefUse,
    inst: InstId,
    (here, crowded): (impl Fn(&Function, InstId) -> Option<usize>, bool),
    fits: Fits,
) {
    let Some((leaves, lut)) = logic(function, inst) else { return };
    let [first, second] = leaves[..] else { return };
    let mut found: SmallVec<[(usize, InstId, VReg, u64); 2]> = SmallVec::new();
    for (made, other) in [(first, second), (second, first)] {
        let again = |maker: &InstId| crowded && function[*maker].op == Op::ISETP;
        let maker = def_use.def_of(function, made).filter(|m| def_use.uses(made) == 1 || again(m));
        let Some(maker) = maker.filter(|m| is_comparison(function, *m)) else { continue };
        let Some(place) = here(function, maker) else { continue };
        found.push((place, maker, other, table(&[made, other], |is| look(&leaves, lut, is))));
    }
    crate::sorted::by_key(&mut found, |found| std::cmp::Reverse(found.0));
    for (_, maker, other, table) in found {
        let Some(joint) = joint(table) else { continue };
        let (before, old) = (DefUse::reads(function, inst), function[inst]);
        let d = function.arg(inst, Role::Pu);
        let data = function[maker];
        let Some(mods) = joint.mods(data.op, data.mods) else { continue };
        let input = Operand::reg(other);
        let input = if joint.other { input } else { input.inverted() };
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        for role in [Role::A, Role::B, Role::Pq] {
            if data.op.role_index(role).is_some() {
                args.push((role, function.arg(maker, role)));
            }
        }
        args.extend([(Role::Pu, d), (Role::Pp, input)]);
        rewrite(function, inst, data.op, &args);
        function[inst].mods = mods;
        if fits(function, inst) {
            return def_use.update(function, inst, &before);
        }
        function[inst] = old;
    }
}

/// Whether an instruction is a comparison of free registers with one result and no predicate to
/// combine it with.
pub fn is_comparison(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let input = || function.arg(inst, Role::Pp);
    let mut free = true;
    function.for_each_use(inst, |reg| free &= is_free(function, reg));
    op.has(Prop::Compares)
        && free
        && function.arg(inst, Role::Pv).is_null()
        && (input().is_null() || input() == Operand::always())
        && function[inst].mods.get(Mod::Bool) == value::bool::AND
}

/// How a comparison is combined with another predicate: the operation, and whether each is taken as
/// it is or inverted.
struct Joint {
    with: u8,
    compared: bool,
    other: bool,
}

/// The combination that has a table over a comparison and another predicate.
fn joint(table: u64) -> Option<Joint> {
    use value::bool::{AND, OR, XOR};
    let (with, compared, other) = match table {
        0b1000 => (AND, true, true),
        0b0100 => (AND, true, false),
        0b0010 => (AND, false, true),
        0b0001 => (AND, false, false),
        0b1110 => (OR, true, true),
        0b1101 => (OR, true, false),
        0b1011 => (OR, false, true),
        0b0111 => (OR, false, false),
        0b0110 => (XOR, true, true),
        0b1001 => (XOR, true, false),
        _ => return None,
    };
    Some(Joint { with, compared, other })
}

impl Joint {
    /// The modifiers of the comparison, inverted where that is asked.
    fn mods(&self, op: Op, mut mods: Mods) -> Option<Mods> {
        mods.set(Mod::Bool, self.with);
        if !self.compared {
            // The upper half of a long comparison depends on the lower half.
            if mods.get(Mod::Ex) != 0 {
                return None;
            }
            mods.set(Mod::Cmp, inverted(mods.get(Mod::Cmp), op != Op::ISETP)?);
        }
        Some(mods)
    }
}
