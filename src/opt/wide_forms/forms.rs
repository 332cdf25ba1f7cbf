//! The operations on pairs: what two on their words become.

use super::{carry, place, same};
use crate::analysis::def_use::Fits;
use crate::arrays::Each;
use crate::ori::long::short_constant;
use crate::ori::{File, Function, InstId, Operand};
use crate::tables::{Mod, Op, Role, value};
use smallvec::SmallVec;

/// One sum for those of the low and the high words.
pub fn sum(function: &mut Function, low: InstId, high: InstId, fits: Fits) -> Option<InstId> {
    let given = |inst, role| !function.arg(inst, role).is_null();
    let zero = |inst| function.arg(inst, Role::C) == Operand::zero();
    let simple = function[low].op == Op::IADD3 && function[low].mods.get(Mod::X) != value::x::X;
    let others = [(low, Role::Pv), (low, Role::Pp), (low, Role::Pq), (high, Role::Pu), (high, Role::Pv)];
    let second = function.arg(high, Role::Pq);
    let carries = function.arg(low, Role::Pu).as_reg().and_then(|reg| place(function, reg)) == carry(function, high);
    let alone =
        others.into_iter().all(|(inst, role)| !given(inst, role)) && (second.is_null() || second == Operand::never());
    if !simple || !carries || !zero(low) || !zero(high) || !alone {
        return None;
    }
    let words = |inst| [Role::A, Role::B].each(|role| function.arg(inst, role));
    let ([a, b], [x, y]) = (words(low), words(high));
    let d = result(function, low, high)?;
    // A word with zeros above it is added by the product with one.
    for ([word, other], [above, high_other]) in [([a, b], [x, y]), ([b, a], [y, x]), ([a, b], [y, x]), ([b, a], [x, y])]
    {
        let general = word.as_reg().filter(|reg| word == word.plain() && function[*reg].file == File::R);
        if above != Operand::zero() || general.is_none() {
            continue;
        }
        let Some(pair) = pair(function, [other, high_other]).filter(|pair| *pair == pair.plain()) else { continue };
        let one = function.imm(1);
        let args = [(Role::D, d), (Role::A, word), (Role::B, one), (Role::C, pair)];
        let new = made(function, high, Op::IMAD_WIDE, &args);
        function[new].mods.set(Mod::Sign, value::sign::U32);
        if fits(function, new) {
            return Some(new);
        }
    }
    for [one, two] in [[[a, x], [b, y]], [[b, y], [a, x]], [[a, y], [b, x]], [[b, x], [a, y]]] {
        let (Some(one), Some(two)) = (pair(function, one), pair(function, two)) else { continue };
        let new = made(function, high, Op::IADD_64, &[(Role::D, d), (Role::A, one), (Role::B, two)]);
        if fits(function, new) {
            return Some(new);
        }
    }
    None
}

/// One comparison for those of the low and the high words.
pub fn comparison(function: &mut Function, low: InstId, high: InstId, fits: Fits) -> Option<InstId> {
    let (of_low, of_high) = (function[low].mods, function[high].mods);
    let alone = [Role::Pv, Role::Pp, Role::Pq].into_iter().all(|role| {
        let operand = function.arg(low, role);
        operand.is_null() || operand == Operand::always()
    });
    let equality = [value::cmp::EQ, value::cmp::NE].contains(&of_low.get(Mod::Cmp));
    let unsigned = of_low.get(Mod::Sign) == value::sign::U32 || equality;
    let plain = function[low].op == Op::ISETP && of_low.get(Mod::Ex) != value::ex::EX;
    let same = of_low.get(Mod::Cmp) == of_high.get(Mod::Cmp) && of_low.get(Mod::Bool) == value::bool::AND;
    let carries = function.arg(low, Role::Pu).as_reg().and_then(|reg| place(function, reg)) == carry(function, high);
    if !plain || !alone || !unsigned || !same || !carries {
        return None;
    }
    let words = |role| [low, high].each(|inst| function.arg(inst, role));
    let (a, b) = (words(Role::A), words(Role::B));
    let (one, two) = (pair(function, a)?, pair(function, b)?);
    let kept = [Role::Pu, Role::Pv, Role::Pp].each(|role| (role, function.arg(high, role)));
    let new = made(function, high, Op::ISETP_64, &[&kept[..], &[(Role::A, one), (Role::B, two)]].concat());
    let mods = &mut function[new].mods;
    [Mod::Cmp, Mod::Bool].into_iter().for_each(|kind| mods.set(kind, of_high.get(kind)));
    let sign = if equality { value::sign::NONE } else { of_high.get(Mod::Sign) };
    mods.set(Mod::Sign, sign);
    fits(function, new).then_some(new)
}

/// The minimum or maximum of two pairs for their comparison and the selection by it.
pub fn minimum(function: &mut Function, compare: InstId, select: InstId, fits: Fits) -> Option<InstId> {
    let of = |inst, role| function.arg(inst, role);
    let alone = [Role::Pp, Role::Pq].into_iter().all(|role| {
        let operand = of(compare, role);
        operand.is_null() || operand == Operand::always()
    });
    let mods = function[compare].mods;
    let alone = alone && mods.get(Mod::Bool) == value::bool::AND;
    let less = match mods.get(Mod::Cmp) {
        value::cmp::LT | value::cmp::LE => true,
        value::cmp::GT | value::cmp::GE => false,
        _ => return None,
    };
    let registers = |operand: Operand| match operand.as_vector() {
        Some(vector) if operand == operand.plain() => {
            function.vector_regs(vector).iter().map(|reg| place(function, *reg)).collect::<Option<SmallVec<[_; 2]>>>()
        }
        _ => None,
    };
    let alike =
        |one: Operand, two: Operand| one == two || registers(one).is_some_and(|one| Some(one) == registers(two));
    let [x, y] = [Role::A, Role::B].each(|role| of(compare, role));
    let [a, b] = [Role::A, Role::B].each(|role| of(select, role));
    let straight = alike(x, a) && alike(y, b);
    if !alone || !(straight || alike(x, b) && alike(y, a)) {
        return None;
    }
    let least = less == (straight != of(select, Role::Pp).not());
    let which = if least { Operand::always() } else { Operand::never() };
    let args =
        [(Role::D, of(select, Role::D)), (Role::A, a), (Role::B, b), (Role::Pp, which), (Role::Pq, Operand::never())];
    let new = made(function, select, Op::IMNMX_64, &args);
    function[new].mods.set(Mod::Sign, mods.get(Mod::Sign));
    function[new].guard = function[select].guard;
    fits(function, new).then_some(new)
}

/// One selection or move for two of words beside each other.
pub fn copy(function: &mut Function, op: Op, first: InstId, second: InstId, fits: Fits) -> Option<InstId> {
    if function[first].op != op || [first, second].iter().any(|i| function[*i].mods.iter().next().is_some()) {
        return None;
    }
    let d = |inst| function.arg(inst, Role::D).as_reg().and_then(|reg| place(function, reg));
    let (low, high) = if d(first) < d(second) { (first, second) } else { (second, first) };
    let d = result(function, low, high)?;
    let words = |role| [low, high].each(|inst| function.arg(inst, role));
    let new = if op == Op::SEL {
        let [one, two] = words(Role::Pp);
        if !same(function, one, two) {
            return None;
        }
        let (a, b) = (words(Role::A), words(Role::B));
        let (a, b) = (pair(function, a)?, pair(function, b)?);
        made(function, second, Op::SEL_64, &[(Role::D, d), (Role::A, a), (Role::B, b), (Role::Pp, one)])
    } else {
        let whole = words(Role::Lanes).iter().all(|lanes| lanes.is_null());
        let constants = words(Role::A).each(|word| function.word_value(word));
        let a = match constants {
            // Unlike an operand of a sum, a constant that is moved has all its bits.
            [Some(low), Some(high)] if high != 0 || low != 0 => {
                Some(function.imm(u64::from(high) << 32 | u64::from(low)))
            }
            _ => pair(function, words(Role::A)),
        };
        let a = a.filter(|_| whole)?;
        let wide = if op == Op::UMOV { Op::UMOV_64 } else { Op::MOV_64 };
        made(function, second, wide, &[(Role::D, d), (Role::A, a)])
    };
    fits(function, new).then_some(new)
}

/// An instruction in no block, on the line of another one.
fn made(function: &mut Function, like: InstId, op: Op, args: &[(Role, Operand)]) -> InstId {
    let new = function.make(op);
    function[new].line = function[like].line;
    args.iter().for_each(|(role, operand)| function.set_arg(new, *role, *operand));
    new
}

/// The results of two instructions as one pair.
fn result(function: &mut Function, low: InstId, high: InstId) -> Option<Operand> {
    let words = [low, high].each(|inst| function.arg(inst, Role::D));
    // What makes words of the uniform file makes pairs of it.
    let file = if function[low].op == Op::UMOV { File::UR } else { File::R };
    let fits = words[0].as_reg().is_some_and(|reg| function[reg].file == file);
    pair(function, words).filter(|pair| fits && *pair == pair.plain())
}

/// The words of a number as one operand: registers beside each other, the first at an even place,
/// or a constant that 32 bits and their sign give.
fn pair(function: &mut Function, [low, high]: [Operand; 2]) -> Option<Operand> {
    if let Some(value) = short_constant(function, low, high) {
        return Some(if value == 0 { Operand::zero() } else { function.imm(value) });
    }
    let regs = [low.as_reg()?, high.as_reg()?];
    let [one, two] = [place(function, regs[0])?, place(function, regs[1])?];
    let turned = low == low.plain().negated() && high == high.plain().inverted();
    let beside = matches!(one.0, File::R | File::UR) && one.1 % 2 == 0 && two == (one.0, one.1 + 1);
    if !beside || !turned && [low, high].iter().any(|word| *word != word.plain()) {
        return None;
    }
    let both = Operand::vector(function.vector(&regs));
    Some(if turned { both.negated() } else { both })
}
