//! Generates instructions from the forms of the tables.
//!
//! It covers each type of a form, each text of each modifier group, changes that break an
//! instruction (another type, a modifier of another form of the operation, a missing modifier), and
//! registers of other types.

use crate::sorted::SortedSet;
use crate::tables::ptx::{Arg, ArgType, FORMS, Form, Group, Modifiers, Op, Role, ScalarType, Span, TypeClass};

/// Modifiers chosen for one instruction: the group and the index of the text.
pub(super) type Choice = Vec<(Group, u8)>;

pub(super) fn texts(rule_mask: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |i| rule_mask >> i & 1 != 0)
}

/// Sorts modifiers in the order of the rows, which is the order of the manual.
pub(super) fn ordered(op: Op, mut choice: Choice) -> Choice {
    let place = |group: Group| {
        let places = op.forms().filter_map(|(_, form)| form.rules.iter().position(|rule| rule.group == group));
        places.max().unwrap_or(usize::MAX)
    };
    choice.sort_by_cached_key(|(g, _)| place(*g));
    choice
}

/// The first text of each required group.
pub(super) fn least(form: &Form) -> Choice {
    let required = form.rules.iter().filter(|rule| rule.required);
    required.filter_map(|rule| texts(rule.mask).next().map(|i| (rule.group, i))).collect()
}

fn with(base: &Choice, group: Group, value: u8) -> Choice {
    let mut choice: Choice = base.iter().copied().filter(|(g, _)| *g != group).collect();
    choice.push((group, value));
    choice
}

/// Every choice that differs from the minimal one in one group, valid or not.
fn choices(form: &Form) -> Vec<Choice> {
    let base = least(form);
    let mut out = vec![base.clone()];
    for (_, other) in form.op.forms() {
        for rule in other.rules {
            out.extend(texts(rule.mask).map(|i| with(&base, rule.group, i)));
        }
    }
    for (gone, _) in &base {
        out.push(base.iter().copied().filter(|(g, _)| g != gone).collect());
    }
    out
}

/// Every choice that differs from the minimal one in two groups of the form.
fn pairs(form: &Form) -> Vec<Choice> {
    let base = least(form);
    let mut out = Vec::new();
    for (n, one) in form.rules.iter().enumerate() {
        for other in &form.rules[n + 1..] {
            for i in texts(one.mask) {
                out.extend(texts(other.mask).map(|k| with(&with(&base, one.group, i), other.group, k)));
            }
        }
    }
    out
}

/// Lists of types: each list that a one-slot form takes, or each type of the table in the first
/// slot.
pub(super) fn type_lists(form: &Form) -> Vec<Vec<ScalarType>> {
    let of = |mask: u64| ScalarType::ALL.into_iter().filter(move |t| mask & t.bit() != 0);
    let mut lists: Vec<Vec<ScalarType>> = vec![Vec::new()];
    for mask in form.types {
        lists = lists.iter().flat_map(|l| of(*mask).map(move |t| [l.as_slice(), &[t]].concat())).collect();
    }
    if form.types.len() == 1 {
        lists.extend(ScalarType::ALL.into_iter().filter(|t| t.class() != TypeClass::Opaque).map(|t| vec![t]));
    }
    lists
}

/// A register with the width and kind of a type.
fn register(ty: ScalarType) -> &'static str {
    match (ty.class(), ty.bits()) {
        (TypeClass::Predicate, _) => "%p1",
        (TypeClass::Float, 32) if ty == ScalarType::F32 => "%f1",
        (TypeClass::Float, 64) => "%d1",
        (_, 64) => "%rd1",
        (_, 128) => "%q1",
        (_, 32) => "%r1",
        _ => "%h1",
    }
}

/// A constant that an operand may be whatever the modifiers: the largest number in all its range
/// rows, or 1 without rows.
fn constant(form: &Form, arg: &Arg) -> String {
    let place = form.args.iter().position(|a| std::ptr::eq(a, arg));
    let rows = || form.op.ranges().iter().filter(|r| place == Some(r.arg as usize));
    let ends = |span: &Span| match *span {
        Span::Integers { high, .. } => Some(high),
        Span::UpTo { .. } | Span::Reals { .. } => None,
    };
    let takes = |value: i64, span: &Span| match *span {
        Span::Integers { low, high, step } => (low..=high).contains(&value) && value % step == 0,
        Span::UpTo { low, .. } => low <= value,
        Span::Reals { .. } => true,
    };
    let all = |value: &i64| rows().all(|row| row.is.iter().any(|span| takes(*value, span)));
    rows().flat_map(|row| row.is).filter_map(ends).filter(all).max().unwrap_or(1).to_string()
}

fn modifiers(choice: &Choice) -> Modifiers {
    let mut modifiers = Modifiers::default();
    choice.iter().for_each(|(group, text)| modifiers.set(*group, *text));
    modifiers
}

fn operand(form: &Form, arg: &Arg, types: &[ScalarType], choice: &Choice) -> Option<String> {
    let ty = match arg.ty {
        ArgType::Untyped => None,
        ArgType::Suffix(n) => Some(*types.get(n)?),
        ArgType::Fixed(ty) => Some(ty),
        ArgType::Wide => {
            ScalarType::ALL.into_iter().find(|t| t.class() == types[0].class() && t.bits() == types[0].bits() * 2)
        }
    };
    let hint = choice.iter().any(|(g, _)| *g == Group::CacheHint);
    if arg.optional && !(hint && form.op != Op::BarSync) {
        return None;
    }
    let width = choice.iter().find(|(g, _)| *g == Group::Vector).map_or(1, |(_, i)| 2 << i);
    let one = register(ty.unwrap_or(ScalarType::B32));
    Some(match arg.role {
        Role::Vdst | Role::Vsrc | Role::Xdst | Role::Xsrc if width > 1 => {
            format!("{{{}}}", vec![one; width].join(", "))
        }
        Role::Fdst | Role::Fsrc => format!("{{{}}}", vec![one; arg.count.into()].join(", ")),
        Role::Preds | Role::Pred => "%p1".into(),
        Role::Const => constant(form, arg),
        Role::Mem | Role::Image => "[%rd1]".into(),
        Role::Tmem => "[%r1]".into(),
        Role::Tensor => format!("[%rd1, {{{}}}]", vec!["%r1"; modifiers(choice).coordinates()].join(", ")),
        Role::Texture | Role::Surface => {
            let geometry = modifiers(choice).geometry?;
            let float = arg.role == Role::Texture && types[1] == ScalarType::F32;
            let count = (geometry.indices() + geometry.dimensions()).next_power_of_two();
            let name = |i: usize| if float && i >= geometry.indices() { "%f1" } else { "%r1" };
            format!("[%rd1, {{{}}}]", (0..count).map(name).collect::<Vec<_>>().join(", "))
        }
        Role::Gradient | Role::Texels => {
            let count = modifiers(choice).geometry?.dimensions().next_power_of_two();
            format!("{{{}}}", vec![if arg.role == Role::Gradient { "%f1" } else { "%r1" }; count].join(", "))
        }
        Role::Offsets => format!("{{{}}}", vec!["%h1"; modifiers(choice).tensor_offsets()].join(", ")),
        Role::Label if form.op == Op::BrxIdx => "T".into(),
        Role::Label => "L".into(),
        Role::Both => format!("{one}|%p1"),
        _ => one.into(),
    })
}

pub(super) fn instruction(form: &Form, types: &[ScalarType], choice: &Choice) -> String {
    let mut text = form.op.name().to_string();
    for (group, value) in choice {
        text.push('.');
        text.push_str(group.info().texts[usize::from(*value)]);
    }
    types.iter().for_each(|ty| text.extend([".", ty.name()]));
    let operands: Vec<String> = form.args.iter().filter_map(|arg| operand(form, arg, types, choice)).collect();
    format!("{text} {};", operands.join(", "))
}

/// Every instruction generated from the forms.
pub fn instructions() -> Vec<String> {
    let mut lines = SortedSet::new();
    // ptxas crashes on some combinations of matrix shapes, types and layouts.
    let simple = |form: &&Form| form.op != Op::Call && !form.rules.iter().any(|r| r.group == Group::MatrixShape);
    for form in FORMS.iter().filter(simple) {
        let lists = type_lists(form);
        for choice in pairs(form) {
            lines.insert(instruction(form, &lists[0], &ordered(form.op, choice)));
        }
        // The forms of an operation share most modifiers.
        let choices: SortedSet<Choice> = choices(form).into_iter().map(|choice| ordered(form.op, choice)).collect();
        for types in &lists {
            lines.extend(choices.iter().map(|choice| instruction(form, types, choice)));
        }
    }
    lines.into_iter().collect()
}

/// A register of each declared type.
const KINDS: [&str; 15] =
    ["%p1", "%c1", "%h1", "%uh1", "%sh1", "%fh1", "%r1", "%ur1", "%sr1", "%fr1", "%f1", "%rd1", "%ul1", "%d1", "%q1"];

/// Every form with each of its types, and the same with one operand replaced by a register of each
/// other type.
pub fn mistyped() -> Vec<String> {
    let mut lines = SortedSet::new();
    let simple = |form: &&Form| form.op != Op::Call;
    for form in FORMS.iter().filter(simple) {
        let of = |mask: &u64| ScalarType::ALL.into_iter().filter(move |t| mask & t.bit() != 0).collect::<Vec<_>>();
        let slots: Vec<Vec<ScalarType>> = form.types.iter().map(of).collect();
        let longest = slots.iter().map(Vec::len).max().unwrap_or(1);
        for n in 0..longest {
            let types: Vec<ScalarType> = slots.iter().map(|list| list[n % list.len()]).collect();
            let right = instruction(form, &types, &ordered(form.op, least(form)));
            for (at, old) in right.match_indices('%').map(|(at, _)| (at, &right[at..])) {
                let old = &old[..old.find(|c: char| c != '%' && !c.is_alphanumeric()).unwrap_or(old.len())];
                lines.extend(KINDS.iter().map(|kind| format!("{}{kind}{}", &right[..at], &right[at + old.len()..])));
            }
        }
    }
    lines.into_iter().collect()
}
