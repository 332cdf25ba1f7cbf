//! Operand legalization: when it consults the backend, how it handles all words of an operand, and
//! the effect of each materializer. Rows S3-38 to S3-40, S3-45 and S3-48 of the feature list.
//!
//! The input is random words of the forms of `tables/encoding` with one operand replaced by one
//! that no form takes, and small handmade functions. The result must be what the recipe's steps
//! say, on every target that has the form.

use crate::build::{legalized, of_word};
use crate::words;
use sassafras::legal::{SmBackend, backend::Inner};
use sassafras::ori::{Function, InstId, Operand, text};
use sassafras::pipeline::encodable::is_legal;
use sassafras::tables::encoding::FORMS;
use sassafras::tables::legal::LegalizerInfo;
use sassafras::tables::operands::{Category, Hook, Material, Step};
use sassafras::tables::ori::{Direction, OPS, Width};
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Op, Prop, Role, Target, backend};
use std::collections::{BTreeMap, BTreeSet};

fn built() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().filter(|target| target.generation.is_some())
}

/// Functions of one instruction, one for each form of these opcodes, in which the operand of a step
/// is replaced by one that no form takes there.
fn exchanged(
    wanted: impl Fn(Op, &Step) -> bool,
    by: impl Fn(&mut Function, &Step, u8) -> Operand,
) -> Vec<(&'static Target, Function, InstId, Role)> {
    let mut all = Vec::new();
    for target in built() {
        let mut random = words::Random::new(u64::from(target.column) + 11);
        for form in FORMS.iter().filter(|form| form.is_on(target) && !form.alias) {
            for step in form.op.recipe().steps.iter().filter(|step| wanted(form.op, step)) {
                let Some((mut function, inst)) = of_word(target, words::random_word(form, target, &mut random)) else {
                    continue;
                };
                let Some(role) = form.op.info().roles.iter().find(|role| role.role == step.role) else { continue };
                let width = function.width(inst, role);
                if !is_legal(&function, inst) || function.arg(inst, step.role).is_null() {
                    continue;
                }
                let operand = by(&mut function, step, width);
                function.set_arg(inst, step.role, operand);
                if !is_legal(&function, inst) {
                    all.push((target, function, inst, step.role));
                }
            }
        }
    }
    all
}

/// The inner backend without one of its hooks.
struct Declines<'a>(&'a dyn SmBackend, Hook);

impl SmBackend for Declines<'_> {
    fn info(&self) -> &'static LegalizerInfo {
        self.0.info()
    }
    fn legalize_operands(&self, function: &mut Function) {
        sassafras::legal::operands::run(function, self, &is_legal);
    }
    fn takes_operands_of(&self, hook: Hook) -> bool {
        hook != self.1 && self.0.takes_operands_of(hook)
    }
}

#[test]
fn s3_40_each_hook_decides_of_its_own_opcodes_alone() {
    let mut decided: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let wanted = |op: Op, step: &Step| {
        op.recipe().hook.is_some() && matches!(step.by, Material::Mat | Material::Uniform) && !step.optional
    };
    let operand = |function: &mut Function, step: &Step, width: u8| match (step.by, width) {
        (Material::Mat, 1) => Operand::special(33),
        _ => function.imm(0x1234_5678),
    };
    for (target, function, inst, _) in exchanged(wanted, operand) {
        let op = function[inst].op;
        let inner = Inner(backend(target.name).unwrap(), &is_legal);
        let without = |hook: Hook| {
            let mut function = function.clone();
            Declines(&inner, hook).late_expansion_unsupported_ops2(&mut function);
            text::print(&function)
        };
        let own = op.recipe().hook.unwrap();
        let mut taken = function.clone();
        legalized(&mut taken);
        let (before, taken) = (text::print(&function), text::print(&taken));
        assert_eq!(without(own), before, "{}", target.name);
        for other in Hook::ALL.into_iter().filter(|hook| *hook != own) {
            assert_eq!(without(other), taken, "{}: {other:?}", target.name);
        }
        if inner.takes_operands_of(own) && taken != before {
            decided.entry(format!("{own:?}")).or_default().insert(op.name());
        } else if !inner.takes_operands_of(own) {
            assert_eq!(taken, before, "{}", target.name);
        }
    }
    println!("{decided:?}");
    // The step of a special-register read leaves it unchanged.
    let hooks = Hook::ALL.into_iter().filter(|hook| *hook != Hook::SpecialRead).map(|hook| format!("{hook:?}"));
    assert_eq!(decided.keys().cloned().collect::<BTreeSet<_>>(), hooks.collect());
}

#[test]
fn s3_38_and_s3_39_every_word_of_every_operand_of_several_goes_in_a_register() {
    let mut seen: BTreeMap<&str, BTreeSet<u8>> = BTreeMap::new();
    // A matrix fragment is in registers from the start: no other operand determines how many words
    // it has.
    let counted =
        |op: Op, step: &Step| op.info().roles.iter().any(|r| r.role == step.role && r.width != Width::Fragment);
    let wanted = |op: Op, step: &Step| op.recipe().category == Category::B && step.many && counted(op, step);
    for (target, mut function, inst, role) in exchanged(wanted, |_, _, _| Operand::constant(0, 0x160)) {
        let op = function[inst].op;
        let width = function.width(inst, &op.info().roles[op.role_index(role).unwrap()]);
        let before = text::print(&function);
        legalized(&mut function);
        let after = text::print(&function);
        assert!(is_legal(&function, inst), "{}: {before} became {after}", target.name);
        // As many moves as words, in order, directly before the instruction, each of the next word.
        let block = &function[function.entry()];
        assert_eq!(block.len(), usize::from(width) + 2, "{}: {before} became {after}", target.name);
        let operand = function.arg(inst, role);
        let words = match operand.as_vector() {
            Some(vector) => function.vector_regs(vector).iter().map(|reg| Operand::reg(*reg)).collect(),
            None => vec![operand],
        };
        let moved: Vec<Operand> = block[..usize::from(width)].iter().map(|i| function.arg(*i, Role::D)).collect();
        assert_eq!(moved, words, "{}: {after}", target.name);
        for (at, inst) in block[..usize::from(width)].iter().enumerate() {
            let line = text::instruction(&function, *inst);
            assert!(line.contains(&format!("c[0][{:#x}]", 0x160 + 4 * at)), "{}: {line}", target.name);
        }
        seen.entry(op.name()).or_default().insert(width);
    }
    println!("{seen:?}");
    let all: BTreeSet<u8> = seen.values().flatten().copied().collect();
    assert!(all.is_superset(&[1, 2, 4].into()) && seen.len() >= 8, "{seen:?}");
}

#[test]
fn s3_45_what_reads_no_register_passes_on_every_target() {
    for info in OPS.iter().filter(|info| info.op.recipe().category == Category::G && !info.op.has(Prop::Bookkeeping)) {
        assert!(info.op.recipe().steps.is_empty() && info.op.recipe().hook.is_none(), "{}", info.name);
        assert!(info.roles.iter().all(|role| role.direction != Direction::Use), "{}", info.name);
    }
    for target in built() {
        let before = format!("function k {}\nb0:\n  NOP\n  MEMBAR{{scope=GPU}}\n  EXIT\n", target.name);
        let mut function = text::parse(&before).unwrap();
        legalized(&mut function);
        assert_eq!(text::print(&function), before);
    }
}

/// One instruction, legalized: the lines before the end of the kernel.
fn after(target: &str, line: &str) -> Vec<String> {
    let mut function = text::parse(&format!("function k {target}\nb0:\n  {line}\n  EXIT\n")).unwrap();
    legalized(&mut function);
    let printed = text::print(&function);
    let lines = printed.lines().skip_while(|line| *line != "b0:").skip(1).map(|line| line.trim().to_string());
    lines.filter(|line| line != "EXIT").collect()
}

/// For each materializer, an operand that it leaves and one that it moves; the third text is the
/// operand of the last instruction then.
#[test]
fn s3_48_each_of_the_six_materializers_leaves_and_moves() {
    let cases = [
        (Material::Mat, "IABS d=r1 a=c[0][0x160]", "IABS d=r1 a=s33", "S2R"),
        (Material::Try, "IMAD d=r1 a=r2 b=0x22 c=r3", "IMAD d=r1 a=r2 b=s33 c=r3", "S2R"),
        (Material::Arch, "LDS d=r1 a=r2 off=0x10", "LDS d=r1 a=r2 off=0x12345678", "IADD3"),
        (Material::Pred, "FMNMX d=r1 a=r2 b=r3 pp=p4", "FMNMX d=r1 a=r2 b=r3 pp=q4", "PLOP3"),
        (Material::Uniform, "UIADD3 d=u1 a=u2 b=u3 c=Z", "UIADD3 d=u1 a=u2 b=c[0][0x160] c=Z", "ULDC"),
    ];
    for (material, left, moved, by) in cases {
        let op = OPS.iter().find(|info| Some(info.name) == left.split([' ', '{']).next()).unwrap().op;
        assert!(op.recipe().steps.iter().any(|step| step.by == material), "{material:?} is no step of {}", op.name());
        assert_eq!(after("sm_90", left), [left], "{material:?}");
        let got = after("sm_90", moved);
        assert!(got.len() == 2 && got[0].starts_with(by), "{material:?}: {got:?}");
    }
    // A special register stays whatever it is.
    assert!(Op::S2R.recipe().steps.iter().any(|step| step.by == Material::Special));
    assert_eq!(after("sm_90", "S2R d=r1 s=s33"), ["S2R d=r1 s=s33"]);
    let all = [Material::Mat, Material::Try, Material::Special, Material::Arch, Material::Pred, Material::Uniform];
    let steps = |by| OPS.iter().filter(|info| info.op.recipe().steps.iter().any(|step| step.by == by)).count();
    println!("opcodes by materializer: {:?}", all.map(|by| (by, steps(by))));
}
