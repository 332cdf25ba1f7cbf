//! Instruction combining (in GeneralOptimize): forwards constants into operands, folds constants,
//! and fuses two operations into one.
//!
//! Computes the same values with fewer instructions; those that become dead are left for dead-code
//! elimination. One walk in reverse postorder, so that definitions are simplified before their
//! uses. An instruction is changed only into one that the target encodes.

mod choices;
mod extremes;
pub mod fuse;
mod lea;
pub mod long;
mod permute;
mod predicates;
mod shift;

use crate::analysis::PassCx;
use crate::analysis::def_use::{DefUse, Fits, is_free, is_pure, rewrite};
use crate::ori::build::int::LUT_AND;
use crate::ori::commute::{says_which, table_in_order};
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand};
use crate::tables::ori::{Class, Direction, Width};
use crate::tables::{Mod, Op, Prop, Role, Says, value};

pub use predicates::as_input;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let mut def_use = cx.take_def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    for block in &cfg.rpo {
        let mut gone = Vec::new();
        let crowded = predicates::is_crowded(function, &def_use, *block);
        for i in 0..function[*block].len() {
            let inst = function[*block][i];
            instruction(function, &mut def_use, inst, fits);
            choices::fold(function, &mut def_use, (*block, i), fits);
            while extremes::fuse(function, &mut def_use, (*block, i), fits) {}
            predicates::fold(function, &mut def_use, (*block, i), crowded, fits);
            while long::long_constants(function, &mut def_use, inst, fits) {}
            match long::wide(function, &mut def_use, *block, i, fits) {
                Some(low) => gone.push(low),
                None if lea::fuse(function, &mut def_use, inst, fits) => {}
                None => while long::long_sum(function, &mut def_use, inst, fits) {},
            }
        }
        if !gone.is_empty() {
            function[*block].retain(|inst| !gone.contains(inst));
        }
    }
}

fn instruction(function: &mut Function, def_use: &mut DefUse, inst: InstId, fits: Fits) {
    let op = function[inst].op;
    if op.has(Prop::Pure) || takes_zeros(op) {
        let before = DefUse::reads(function, inst);
        order(function, def_use, inst, fits);
        forward(function, def_use, inst, fits);
        signs(function, def_use, inst, fits);
        shift::upper_half(function, def_use, inst, fits);
        def_use.update(function, inst, &before);
    }
    if !op.has(Prop::Pure) || !function[inst].guard.is_null() {
        return;
    }
    // Each step leaves fewer instructions, so the loop ends.
    let before = DefUse::reads(function, inst);
    if fold_constants(function, def_use, inst) {
        return def_use.update(function, inst, &before);
    }
    while {
        let before = DefUse::reads(function, inst);
        let changed = fuse::once(function, def_use, inst, fits) || permute::fuse(function, def_use, inst, fits);
        if changed {
            def_use.update(function, inst, &before);
        }
        changed
    } {}
}

/// Whether operands of an impure operation may be RZ.
fn takes_zeros(op: Op) -> bool {
    op.has(Prop::WritesMemory) && !op.has(Prop::Convergent) || op.has(Prop::WideZero) || is_product(op)
}

/// Whether an operation is a matrix multiply-accumulate on registers.
fn is_product(op: Op) -> bool {
    let fragment = |role| op.role_index(role).is_some_and(|at| op.info().roles[at].width == Width::Fragment);
    op.has(Prop::Convergent) && [Role::A, Role::B, Role::C].into_iter().all(fragment)
}

/// Whether RZ may replace an operand of `words` zero words in an impure operation.
fn takes_zero(function: &Function, inst: InstId, at: usize, words: usize) -> bool {
    let op = function[inst].op;
    let role = &op.info().roles[at];
    match role.width {
        // For an A or B operand ptxas writes RZ only in place of a single register.
        Width::Fragment if op.has(Prop::WideZero) => true,
        Width::Fragment => is_product(op) && (role.role == Role::C || role.role == Role::B && words == 1),
        Width::Size if !op.has(Prop::WritesMemory) => false,
        // The compare and swap values are in adjacent registers, and ptxas never uses RZ for
        // several elements.
        Width::Size if op.has(Prop::ReadsMemory) => {
            let several = Mod::Size.says(Says::Elements, function[inst].mods.get(Mod::Size)) > 1;
            let swaps = op.role_index(Role::C).is_some() && !function.arg(inst, Role::C).is_null();
            !swaps && (words == 1 || words == 2 && !several)
        }
        Width::Size => words == 1 || op.has(Prop::WideZero),
        // The halves of a 256-bit store.
        Width::Words(4) => op.has(Prop::WritesMemory) && !op.has(Prop::ReadsMemory),
        _ => false,
    }
}

/// Whether swapping the first two sources leaves the results unchanged.
pub(super) fn swaps(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    op.has(Prop::Commutative) && !says_which(function, inst) || op == Op::LOP3
}

/// Moves a constant source of a commutative operation to where immediates can be encoded.
fn order(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let (a, b) = (function.arg(inst, Role::A), function.arg(inst, Role::B));
    let known = |o: Operand| !matches!(o.kind(), Kind::Zero) && def_use.known(function, o).is_some();
    if !swaps(function, inst) || !known(a) || known(b) || matches!(b.kind(), Kind::Imm(_) | Kind::Const { .. }) {
        return;
    }
    swap(function, inst, a, b);
    if !fits(function, inst) {
        swap(function, inst, b, a);
    }
}

/// Swaps the first two sources, `a` and `b`, and the modifiers of each.
pub(super) fn swap(function: &mut Function, inst: InstId, a: Operand, b: Operand) {
    function.set_arg(inst, Role::A, b);
    function.set_arg(inst, Role::B, a);
    let mods = &mut function[inst].mods;
    let (of_a, of_b) = (mods.get(Mod::SwzA), mods.get(Mod::SwzB));
    if of_a != of_b {
        mods.set(Mod::SwzA, of_b);
        mods.set(Mod::SwzB, of_a);
    }
    if function[inst].op == Op::LOP3 {
        let lut = function.imm_value(function.arg(inst, Role::Lut)).unwrap_or(0);
        let swapped = function.imm(table_in_order(lut, &[1, 0]));
        function.set_arg(inst, Role::Lut, swapped);
    }
}

/// Replaces registers with constant values by RZ or an immediate where the target encodes it.
fn forward(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let op = function[inst].op;
    let pure = op.has(Prop::Pure);
    for (i, role) in op.info().roles.iter().enumerate() {
        let old = function.args(inst)[i];
        if role.direction != Direction::Use || role.class != Class::Reg {
            continue;
        }
        let (bits, exact, words) = match old.kind() {
            _ if old != old.plain() => (ones(function, def_use, inst, old), true, 1),
            Kind::Reg(reg) => (def_use.constant(function, reg).map(u64::from), pure, 1),
            Kind::Vector(vector) if pure && role.width == Width::Words(2) => {
                let words = function.vector_regs(vector);
                let word = |at: usize| words.get(at).and_then(|r| def_use.constant(function, *r)).map(u64::from);
                (word(0).zip(word(1)).map(|(low, high)| high << 32 | low), op.has(Prop::Fp64Pipe), 2)
            }
            Kind::Vector(vector) if !pure => {
                let words = function.vector_regs(vector);
                let zero = words.iter().all(|word| def_use.constant(function, *word) == Some(0));
                (zero.then_some(0), false, words.len())
            }
            _ => continue,
        };
        let Some(bits) = bits else { continue };
        let mut candidates = Vec::with_capacity(2);
        if bits == 0 && (pure || takes_zero(function, inst, i, words)) {
            candidates.push(Operand::zero());
        }
        if exact && bits != 0 {
            candidates.push(function.imm(bits));
        }
        for new in candidates {
            function.args_mut(inst)[i] = new;
            if fits(function, inst) {
                break;
            }
            function.args_mut(inst)[i] = old;
        }
    }
}

/// The ones that an inverted zero adds to a sum: the high word of what is subtracted.
fn ones(function: &Function, def_use: &DefUse, inst: InstId, operand: Operand) -> Option<u64> {
    let inverted = function[inst].op == Op::IADD3 && operand == operand.plain().inverted();
    let zero = def_use.known(function, operand.plain()) == Some(0);
    (inverted && zero).then_some(u64::from(u32::MAX))
}

/// Folds negations and absolute values of floats, which are sums with -0, into operand modifiers of
/// arithmetic.
fn signs(function: &mut Function, def_use: &DefUse, inst: InstId, fits: Fits) {
    let op = function[inst].op;
    if !op.has(Prop::FloatSigns) {
        return;
    }
    if function[inst].mods.get(Mod::Xorsign) != 0 {
        // The sign of the result is made from those of the sources, whatever their magnitudes are.
        return;
    }
    for role in [Role::A, Role::B, Role::C] {
        let old = function.arg(inst, role);
        let Some(new) = signed(function, def_use, inst, old) else { continue };
        function.set_arg(inst, role, new);
        if fits(function, inst) {
            continue;
        }
        // The sign of a product may be on its other factor.
        let other = function.arg(inst, Role::B);
        let factor = role == Role::A && op.has(Prop::Multiplies) && new.neg();
        if factor && !new.abs() && matches!(other.kind(), Kind::Reg(_) | Kind::Vector(_)) {
            function.set_arg(inst, Role::A, new.negated());
            function.set_arg(inst, Role::B, other.negated());
            if fits(function, inst) {
                continue;
            }
            function.set_arg(inst, Role::B, other);
        }
        function.set_arg(inst, role, old);
    }
}

/// The source and sign that an operand copies; `None` if it is not such a copy.
fn signed(function: &Function, def_use: &DefUse, inst: InstId, operand: Operand) -> Option<Operand> {
    let mut regs = Vec::new();
    function.for_each_reg(operand, |reg| regs.push(reg));
    let maker = def_use.def_of(function, *regs.first()?)?;
    let data = &function[maker];
    let result = function.arg(maker, Role::D);
    let mut made = Vec::new();
    function.for_each_reg(result, |reg| made.push(reg));
    let wide = matches!(operand.kind(), Kind::Vector(_));
    let fitting = made == regs && data.op == if wide { Op::DADD } else { Op::FADD };
    // If the copy flushes subnormals, the user must flush them too.
    let flushes = |i: InstId| function[i].mods.get(Mod::Ftz) != 0;
    let others = data.mods.iter().any(|(kind, _)| kind != Mod::Ftz);
    if !fitting || others || flushes(maker) && !flushes(inst) {
        return None;
    }
    let (a, b) = (function.arg(maker, Role::A), function.arg(maker, Role::B));
    let nothing = Operand::zero().negated();
    let source = if a == nothing {
        b
    } else if b == nothing {
        a
    } else {
        return None;
    };
    let mut free = matches!(source.kind(), Kind::Reg(_) | Kind::Vector(_));
    function.for_each_reg(source, |reg| free &= is_free(function, reg));
    let plain = source.plain();
    let new = match (operand.abs(), source.abs()) {
        (true, _) | (false, true) => plain.absolute(),
        (false, false) => plain,
    };
    let negative = operand.neg() ^ (source.neg() && !operand.abs());
    (free && !operand.not() && !source.not()).then_some(if negative { new.negated() } else { new })
}

/// Replaces an unguarded pure instruction of words by its result, as far as its constant sources
/// determine it; returns whether it changed.
pub fn fold_constants(function: &mut Function, def_use: &DefUse, inst: InstId) -> bool {
    fold(function, def_use, inst) || shift::simplify(function, def_use, inst)
}

pub use shift::{half_of, right as shift_right};

/// Folds sums and products with constant operands; returns whether the instruction changed.
fn fold(function: &mut Function, def_use: &DefUse, inst: InstId) -> bool {
    let result = function.arg(inst, Role::D);
    let source = match function[inst].op {
        Op::IADD3 if fuse::is_plain_sum(function, inst) => {
            let Some((terms, bias)) = fuse::terms(function, def_use, inst) else { return false };
            match (terms.as_slice(), bias) {
                ([], bias) => function.imm(bias.into()),
                ([one], 0) if *one == one.plain() => *one,
                _ => return false,
            }
        }
        Op::IMAD if function[inst].mods.get(Mod::X) != value::x::X => {
            let known = |role| def_use.known(function, function.arg(inst, role));
            match (known(Role::A), known(Role::B), known(Role::C)) {
                (Some(a), Some(b), Some(c)) => function.imm(a.wrapping_mul(b).wrapping_add(c).into()),
                (Some(0), _, None) | (_, Some(0), None) => function.arg(inst, Role::C),
                (Some(0), _, Some(c)) | (_, Some(0), Some(c)) => function.imm(c.into()),
                (Some(1), _, Some(0)) => function.arg(inst, Role::B),
                (_, Some(1), Some(0)) => function.arg(inst, Role::A),
                _ => return false,
            }
        }
        Op::LOP3 => match (logic(function, def_use, inst), fuse::one_input(function, inst)) {
            (Some(value), _) => function.imm(value.into()),
            (None, Some(source)) => source,
            (None, None) => return false,
        },
        Op::PRMT => match (permuted(function, def_use, inst), extended(function, def_use, inst)) {
            (Some(value), _) => function.imm(value.into()),
            (None, Some(source)) => source,
            (None, None) => return false,
        },
        _ => return false,
    };
    let outs = [Role::Pu, Role::Pv].into_iter().all(|r| function.arg(inst, r).is_null());
    let ins = function.arg(inst, Role::Pp).is_null();
    if !outs || !ins || source != source.plain() || !matches!(source.kind(), Kind::Reg(_) | Kind::Imm(_) | Kind::Zero) {
        return false;
    }
    let source = if function.imm_value(source) == Some(0) { Operand::zero() } else { source };
    rewrite(function, inst, Op::MOV, &[(Role::D, result), (Role::A, source)]);
    true
}

/// The value of a LOP3 of constants.
fn logic(function: &Function, def_use: &DefUse, inst: InstId) -> Option<u32> {
    let table = function.imm_value(function.arg(inst, Role::Lut))?;
    let known = |role| def_use.known(function, function.arg(inst, role));
    let inputs = [known(Role::A)?, known(Role::B)?, known(Role::C)?];
    // The row of the table for a bit position; the first input is the highest bit.
    let row = |at: u32| inputs.iter().fold(0, |row, input| row << 1 | (input >> at & 1));
    Some((0..32).fold(0, |value, at| value | ((table >> row(at) & 1) as u32) << at))
}

/// The source of a PRMT that extends a half or a byte by its sign, which is known to be zero with
/// all that is above it.
fn extended(function: &Function, def_use: &DefUse, inst: InstId) -> Option<Operand> {
    let highest = match def_use.known(function, function.arg(inst, Role::B))? {
        0x9910 => 0x7fff,
        0x8880 => 0x7f,
        _ => return None,
    };
    let source = function.arg(inst, Role::A);
    let maker = def_use.def_of(function, source.as_reg().filter(|_| source == source.plain())?)?;
    let alone = function[inst].mods.iter().next().is_none() && is_pure(function, maker);
    let masks = function[maker].op == Op::LOP3 && function.arg(maker, Role::Pp).is_null();
    let table = function.imm_value(function.arg(maker, Role::Lut)) == Some(LUT_AND.into());
    let masked = function.arg(maker, Role::C) == Operand::zero() && table;
    let mask = [Role::A, Role::B].into_iter().find_map(|role| def_use.known(function, function.arg(maker, role)))?;
    (alone && masks && masked && mask <= highest).then_some(source)
}

/// The value of a PRMT of constants with a byte selector.
fn permuted(function: &Function, def_use: &DefUse, inst: InstId) -> Option<u32> {
    if function[inst].mods.iter().next().is_some() {
        return None;
    }
    let known = |role| def_use.known(function, function.arg(inst, role));
    let (selector, bytes) = (known(Role::B)?, u64::from(known(Role::C)?) << 32 | u64::from(known(Role::A)?));
    let byte = |at: u32| {
        let choice = selector >> (4 * at);
        let byte = (bytes >> (8 * (choice & 7)) & 0xff) as u32;
        // The upper bit of a selector nibble replicates the sign of the byte.
        if choice & 8 == 0 { byte } else { 0xff * (byte >> 7) }
    };
    Some((0..4).fold(0, |value, at| value | byte(at) << (8 * at)))
}
