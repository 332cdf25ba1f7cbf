//! Pass `wide_forms`: sums and comparisons of 64-bit integers in one instruction, on targets that
//! have it.
//!
//! Two IADD3 with a carry between them become one IADD.64, two ISETP one comparison of pairs. Only
//! values that are pairs already are taken, so that no word must be moved beside another: results
//! of one instruction, of PHIs of one block, and constants that the extended sign of 32 bits gives.
//! Runs where the words that the uniform file holds are known.

use super::combine::fuse::{high_sum, low_sum};
use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, is_free, rewrite};
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg, table};
use crate::tables::{Feature, Mod, Op, Role, value};
use cranelift_entity::SecondaryMap;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if !cx.function.target.has(Feature::Integer64) {
        return;
    }
    let (cfg, mut def_use) = (cx.cfg(), cx.take_def_use());
    let function = &mut *cx.function;
    let mut pairs = Pairs::new(function);
    let mut gone: SecondaryMap<InstId, bool> = SecondaryMap::new();
    for block in &cfg.rpo {
        for at in 0..function.blocks[*block].len() {
            let low = sum(function, &mut def_use, &mut pairs, (*block, at), cx.encoder.encodes)
                .or_else(|| comparison(function, &mut def_use, &pairs, (*block, at), cx.encoder.encodes));
            if let Some(low) = low {
                gone[low] = true;
            }
        }
    }
    for block in &cfg.rpo {
        function.blocks[*block].retain(|inst| !gone[*inst]);
    }
}

/// Whether the target encodes an instruction as it stands.
type Encodes = fn(&Function, InstId) -> bool;

/// Where registers are made.
struct Pairs {
    maker: SecondaryMap<VReg, Option<(InstId, Block)>>,
}

impl Pairs {
    fn new(function: &Function) -> Pairs {
        let mut maker = table(function.regs.len());
        for block in &function.layout {
            for inst in &function.blocks[*block] {
                function.for_each_def(*inst, |reg| maker[reg] = Some((*inst, *block)));
            }
        }
        Pairs { maker }
    }

    /// Whether two registers are made beside each other, the first at an even place, or may be.
    fn are_one(&self, function: &Function, low: VReg, high: VReg) -> bool {
        let (Some((one, here)), Some((two, there))) = (self.maker[low], self.maker[high]) else { return false };
        if one != two {
            let phi = |inst: InstId| function.insts[inst].op == Op::PHI;
            return here == there && phi(one) && phi(two);
        }
        function.args(one).iter().any(|operand| match operand.kind() {
            Kind::Vector(vector) => {
                let regs = function.vector_regs(vector);
                regs.iter().position(|reg| *reg == low).is_some_and(|at| at % 2 == 0 && regs.get(at + 1) == Some(&high))
            }
            _ => false,
        })
    }

    /// The words of a number as one operand.
    fn joined(&self, function: &mut Function, low: Operand, high: Operand) -> Option<Operand> {
        let value = |operand: Operand| match operand.kind() {
            _ if operand != operand.plain() => None,
            Kind::Zero => Some(0),
            Kind::Imm(_) => function.imm_value(operand).map(|value| value as u32),
            _ => None,
        };
        if let (Some(low), Some(high)) = (value(low), value(high)) {
            let extended = (low as i32 >> 31) as u32 == high;
            return extended.then(|| if low == 0 { Operand::zero() } else { function.imm(u64::from(low)) });
        }
        let negative = low.neg() && high.not();
        let (one, two) = (low.as_reg()?, high.as_reg()?);
        let as_they_are = low == low.plain() && high == high.plain();
        let turned = low == low.plain().negated() && high == high.plain().inverted();
        let files = [one, two].map(|reg| function.regs[reg].file);
        let free = is_free(function, one) && is_free(function, two);
        if one == two || !(as_they_are || turned) || files[0] != files[1] || !free || !self.are_one(function, one, two)
        {
            return None;
        }
        let vector = Operand::vector(function.vector(&[one, two]));
        Some(if negative { vector.negated() } else { vector })
    }
}

/// Makes one sum of the two whose high one stands here; returns the low one.
fn sum(
    function: &mut Function,
    def_use: &mut DefUse,
    pairs: &mut Pairs,
    (block, at): (Block, usize),
    encodes: Encodes,
) -> Option<InstId> {
    let high = function.blocks[block][at];
    let carry = high_sum(function, high)?;
    let low = def_use.single_use_def(function, carry).filter(|low| low_sum(function, *low))?;
    let from = function.blocks[block][..at].iter().rposition(|inst| *inst == low)?;
    let d = [low, high].map(|inst| function.arg(inst, Role::D).as_reg());
    let [Some(first), Some(second)] = d else { return None };
    let general = |reg: VReg| is_free(function, reg) && function.regs[reg].file == File::R;
    if !general(first) || !general(second) || is_read(function, &function.blocks[block][from + 1..at], first) {
        return None;
    }
    let words = |inst| [Role::A, Role::B].map(|role| function.arg(inst, role));
    let ([a, b], [x, y]) = (words(low), words(high));
    for [(a, x), (b, y)] in [[(a, x), (b, y)], [(b, y), (a, x)], [(a, y), (b, x)], [(b, x), (a, y)]] {
        let (Some(one), Some(two)) = (pairs.joined(function, a, x), pairs.joined(function, b, y)) else { continue };
        let before = [DefUse::reads(function, low), DefUse::reads(function, high)].concat();
        let old = function.insts[high];
        let result = Operand::vector(function.vector(&[first, second]));
        rewrite(function, high, Op::IADD_64, &[(Role::D, result), (Role::A, one), (Role::B, two)]);
        if encodes(function, high) {
            pairs.maker[first] = Some((high, block));
            def_use.set_def(function, high);
            def_use.update(function, high, &before);
            return Some(low);
        }
        function.insts[high] = old;
    }
    None
}

fn is_read(function: &Function, insts: &[InstId], reg: VReg) -> bool {
    let mut read = false;
    insts.iter().for_each(|inst| function.for_each_use(*inst, |used| read |= used == reg));
    read
}

/// Makes one comparison of the two whose high one stands here; returns the low one.
fn comparison(
    function: &mut Function,
    def_use: &mut DefUse,
    pairs: &Pairs,
    (block, at): (Block, usize),
    encodes: Encodes,
) -> Option<InstId> {
    let high = function.blocks[block][at];
    let data = function.insts[high];
    if data.op != Op::ISETP || !data.guard.is_null() || data.mods.get(Mod::Ex) != value::ex::EX {
        return None;
    }
    let carry = function.arg(high, Role::Pq);
    let low = def_use.single_use_def(function, carry.as_reg().filter(|_| carry == carry.plain())?)?;
    let of_low = function.insts[low].mods;
    let alone = [Role::Pv, Role::Pp, Role::Pq].into_iter().all(|role| {
        let operand = function.arg(low, role);
        operand.is_null() || operand == Operand::always()
    });
    let unsigned = of_low.get(Mod::Sign) == value::sign::U32 && of_low.get(Mod::Bool) == value::bool::AND;
    let same = of_low.get(Mod::Cmp) == data.mods.get(Mod::Cmp) && of_low.get(Mod::Ex) != value::ex::EX;
    if function.insts[low].op != Op::ISETP || !alone || !unsigned || !same {
        return None;
    }
    let words = |role| (function.arg(low, role), function.arg(high, role));
    let ((a, x), (b, y)) = (words(Role::A), words(Role::B));
    let (one, two) = (pairs.joined(function, a, x)?, pairs.joined(function, b, y)?);
    let before = [DefUse::reads(function, low), DefUse::reads(function, high)].concat();
    let kept = [Role::Pu, Role::Pv, Role::Pp].map(|role| (role, function.arg(high, role)));
    rewrite(function, high, Op::ISETP_64, &[&kept[..], &[(Role::A, one), (Role::B, two)]].concat());
    let mods = &mut function.insts[high].mods;
    [Mod::Cmp, Mod::Bool, Mod::Sign].into_iter().for_each(|kind| mods.set(kind, data.mods.get(kind)));
    if encodes(function, high) {
        def_use.set_def(function, high);
        def_use.update(function, high, &before);
        return Some(low);
    }
    function.insts[high] = data;
    None
}
