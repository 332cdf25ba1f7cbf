//! Operand legalization: rows S3-35 to S3-50 of the feature list.
//!
//! The input is instructions with operands of every kind, from the encoding tables and handmade. An
//! encodable instruction must stay unchanged; any other must become encodable with as few moves as
//! any choice of operands needs, which an independent search determines; and it must compute the
//! same on the simulator.

mod compare;
mod impure;

use crate::build;
use crate::build::{Put, kinds, legalized, line, of_word};
use crate::words;
use sassafras::legal::{SmBackend, backend::Inner};
use sassafras::ori::{Function, Operand, text};
use sassafras::pipeline::encodable::is_legal;
use sassafras::tables::encoding::FORMS;
use sassafras::tables::legal::LegalizerInfo;
use sassafras::tables::operands::{Category, Hook, Material, RECIPES};
use sassafras::tables::ori::{Class, Direction, OPS, Width};
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Op, Prop, Role, Target, backend};
use std::collections::BTreeMap;

fn built() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().filter(|target| target.generation.is_some())
}

#[test]
fn s3_35_every_opcode_has_a_recipe() {
    for info in &OPS {
        let recipe = info.op.recipe();
        let used = info.roles.iter().filter(|role| role.direction == Direction::Use);
        let covered = |role: Role| recipe.steps.iter().filter(|step| step.role == role).count();
        if !info.op.has(Prop::Bookkeeping) {
            used.for_each(|role| assert_eq!(covered(role.role), 1, "{} {}", info.name, role.role.name()));
        }
    }
}

#[test]
fn s3_36_the_seven_categories_have_their_opcodes() {
    let mut count: BTreeMap<Category, usize> = BTreeMap::new();
    // Only published opcodes; our own may change.
    let published = OPS.iter().filter(|info| info.op as u16 <= 321);
    published.for_each(|info| *count.entry(info.op.recipe().category).or_default() += 1);
    use Category::*;
    // The published counts (73, 5, 24, 3, 15, 8, 22) refer to a different numbering.
    assert_eq!(count, BTreeMap::from([(A, 104), (B, 11), (C, 58), (D, 2), (E, 7), (F, 10), (G, 114)]));
}

#[test]
fn s3_48_each_of_the_six_materializers_is_in_a_recipe() {
    use Material::*;
    for material in [Mat, Try, Special, Arch, Pred, Uniform] {
        let steps = RECIPES.iter().flat_map(|recipe| recipe.steps).filter(|step| step.by == material).count();
        assert!(steps > 1, "{material:?}");
    }
}

#[test]
fn s3_45_what_reads_no_register_passes() {
    for info in OPS.iter().filter(|info| info.op.recipe().category == Category::G && !info.op.has(Prop::Bookkeeping)) {
        assert!(info.roles.iter().all(|role| role.direction != Direction::Use), "{}", info.name);
    }
    assert_eq!(after("sm_90", "  NOP\n  MEMBAR{fence=SC scope=GPU}"), ["NOP", "MEMBAR{scope=GPU}"]);
}

/// A backend that takes the operands of every opcode that consults it.
struct Declines<'a>(&'a dyn SmBackend);

impl SmBackend for Declines<'_> {
    fn info(&self) -> &'static LegalizerInfo {
        self.0.info()
    }
    fn legalize_operands(&self, function: &mut Function) {
        sassafras::legal::operands::run(function, self, &is_legal);
    }
    fn takes_operands_of(&self, _: Hook) -> bool {
        false
    }
}

#[test]
fn s3_40_the_backend_is_asked_for_the_opcodes_of_category_c() {
    let lines = "  F2I d=r1 a=s33\n  IABS d=r2 a=s33";
    assert_eq!(after("sm_90", lines), ["S2R d=new1 s=s33", "F2I d=r1 a=new1", "S2R d=new2 s=s33", "IABS d=r2 a=new2"]);
    let mut function = text::parse(&format!("function k sm_90\nb0:\n{lines}\n  EXIT\n")).unwrap();
    let inner = Inner(backend("sm_90").unwrap(), &is_legal);
    Declines(&inner).late_expansion_unsupported_ops2(&mut function);
    let printed = text::print(&function);
    assert!(printed.contains("F2I d=r1 a=s33") && printed.contains("IABS d=r2 a=r"), "{printed}");
    assert!(inner.takes_operands_of(Hook::Bulk));
    assert!(!Inner(backend("sm_80").unwrap(), &is_legal).takes_operands_of(Hook::Bulk));
}

/// Every form of every opcode, with operands of its own kinds.
#[test]
fn what_is_encoded_is_left_alone() {
    let (mut seen, mut passed_over, mut wrong) = (0, 0, Vec::new());
    let mut why: BTreeMap<String, usize> = BTreeMap::new();
    for target in built() {
        let mut random = words::Random::new(u64::from(target.column) + 7);
        for form in FORMS.iter().filter(|form| form.is_on(target) && !form.alias) {
            for _ in 0..2 {
                let word = words::random_word(form, target, &mut random);
                let Some((mut function, inst)) = of_word(target, word) else {
                    passed_over += 1;
                    *why.entry("no operand of Ori".to_string()).or_default() += 1;
                    continue;
                };
                if !is_legal(&function, inst) || build::has_wide_integer(&function, inst) {
                    passed_over += 1;
                    *why.entry(form.op.name().to_string()).or_default() += 1;
                    continue;
                }
                let before = text::print(&function);
                legalized(&mut function);
                seen += 1;
                if text::print(&function) != before {
                    wrong.push(format!("{}: {before} became {}", target.name, text::print(&function)));
                }
            }
        }
    }
    println!("{seen} forms left alone, {passed_over} passed over: {why:?}");
    assert!(seen > 8 * passed_over && seen > 20_000, "{seen} {passed_over}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}

/// Opcodes for which every combination of operands is tried: pure ones on general registers.
fn opcodes() -> impl Iterator<Item = Op> {
    let general = |op: &Op| {
        let used = op.info().roles.iter().filter(|role| role.direction == Direction::Use && role.class == Class::Reg);
        op.has(Prop::Pure) && !op.has(Prop::Pseudo) && used.count() > 0 && *op != Op::LDC
    };
    OPS.iter().filter(|info| info.built).map(|info| info.op).filter(general)
}

/// Equivalent orders of the operands, as permutations.
fn same(op: Op, count: usize) -> Vec<Vec<usize>> {
    let all = match op {
        Op::IADD3 | Op::LOP3 => {
            vec![vec![0, 1, 2], vec![1, 0, 2], vec![0, 2, 1], vec![2, 1, 0], vec![1, 2, 0], vec![2, 0, 1]]
        }
        Op::ISETP | Op::FSETP | Op::DSETP | Op::FSET | Op::SEL | Op::FSEL => vec![vec![0, 1], vec![1, 0]],
        _ if op.has(Prop::Commutative) => vec![vec![0, 1, 2], vec![1, 0, 2]],
        _ => vec![vec![0, 1, 2]],
    };
    all.into_iter()
        .map(|order| order.into_iter().filter(|at| *at < count).collect())
        .map(|mut order: Vec<usize>| {
            (order.len()..count).for_each(|at| order.push(at));
            order
        })
        .collect()
}

/// The smallest number of moves that makes an instruction encodable, over all orders and sets of
/// operands.
fn fewest(target: &'static Target, op: Op, roles: &[(Role, usize)], puts: &[Put]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for order in same(op, roles.len()) {
        // A wide operand does not fit the position of a narrow one.
        if order.iter().zip(roles).any(|(from, role)| roles[*from].1 != role.1) {
            continue;
        }
        let given: Vec<Put> = order.iter().map(|from| puts[*from]).collect();
        for mask in 0..1u32 << roles.len() {
            let moved = |at: usize| mask >> at & 1 != 0;
            if (0..roles.len()).any(|at| moved(at) && given[at] == Put::Reg) {
                continue;
            }
            let cost: usize = (0..roles.len()).filter(|at| moved(*at)).map(|at| roles[at].1).sum();
            if best.is_some_and(|best| best <= cost) {
                continue;
            }
            let now: Vec<Put> = (0..roles.len()).map(|at| if moved(at) { Put::Reg } else { given[at] }).collect();
            // The upper word of a one-word immediate field in a 64-bit operation is unknown.
            let unknown = |at: usize| roles[at].1 == 2 && !op.has(Prop::Fp64Pipe) && now[at].is_immediate();
            let (function, inst) = line(target, op, roles, &now);
            if !(0..roles.len()).any(unknown) && is_legal(&function, inst) {
                best = Some(cost);
            }
        }
    }
    best
}

#[test]
fn s3_47_no_move_is_needless() {
    let (mut tried, mut moves, mut wrong) = (0, 0, Vec::new());
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for target in built() {
        for op in opcodes() {
            let roles: Vec<(Role, usize)> = build::sources(op);
            let (function, inst) = line(target, op, &roles, &vec![Put::Reg; roles.len()]);
            if !is_legal(&function, inst) {
                continue;
            }
            *named.entry(op.name()).or_default() += 1;
            for puts in kinds(roles.len()) {
                let (mut function, _) = line(target, op, &roles, &puts);
                legalized(&mut function);
                let (insts, last) = (function[function.entry()].len() - 2, function[function.entry()].len() - 2);
                let inst = function[function.entry()][last];
                let fewest = fewest(target, op, &roles, &puts);
                (tried, moves) = (tried + 1, moves + insts);
                // A move that can become another opcode needs no second one.
                let enough = if op.recipe().moves.is_some() { Some(0) } else { fewest };
                if !is_legal(&function, inst) || enough != Some(insts) {
                    wrong.push(format!(
                        "{} {} {puts:?}: {insts} moves, {fewest:?} are enough: {}",
                        target.name,
                        op.name(),
                        text::print(&function)
                    ));
                }
            }
        }
    }
    println!("{tried} instructions of {} opcodes, {moves} moves", named.len());
    assert!(named.len() >= 34 && tried > 50_000, "{tried} {named:?}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}

#[test]
fn s3_47_no_move_is_needless_in_front_of_what_is_no_function_of_its_sources() {
    let (mut named, mut moves, mut wrong) = (BTreeMap::<&str, usize>::new(), 0, Vec::new());
    for target in built() {
        let tried = impure::forms_of(target);
        tried.of.into_iter().for_each(|(name, count)| *named.entry(name).or_default() += count);
        moves += tried.moves;
        wrong.extend(tried.wrong.into_iter().map(|(name, line)| (name, format!("{} {line}", target.name))));
    }
    let tried: usize = named.values().sum();
    println!("{tried} instructions of {} opcodes, {moves} moves", named.len());
    for name in ["STG", "STS", "STL", "ST", "ATOMG", "ATOMS", "RED", "BAR", "SHFL", "HMMA", "IMMA", "DMMA", "LDG"] {
        assert!(named.contains_key(name), "{name} is not among {named:?}");
    }
    assert!(tried > 20_000, "{tried} {named:?}");
    let first: BTreeMap<&str, String> = wrong.iter().rev().cloned().collect();
    assert!(wrong.is_empty(), "{} of {tried}: {first:#?}", wrong.len());
}

/// One instruction in text form, legalized in a kernel of its own; returns the instructions before
/// the end. New registers are named `new1`, `new2`, … in order of occurrence.
fn after(target: &str, lines: &str) -> Vec<String> {
    let mut function = text::parse(&format!("function k {target}\nb0:\n{lines}\n  EXIT\n")).unwrap();
    let given = function.regs().len();
    legalized(&mut function);
    let printed = text::print(&function);
    let body = printed.lines().skip_while(|line| *line != "b0:").skip(1).map(|line| line.trim().to_string());
    let mut names: Vec<String> = Vec::new();
    body.filter(|line| line != "EXIT").map(|line| renamed(&line, given, &mut names)).collect()
}

fn renamed(line: &str, given: usize, names: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let starts = !out.ends_with(|c: char| c.is_ascii_alphanumeric()) && "rupq".contains(first);
        let digits: String = rest[1..].chars().take_while(char::is_ascii_digit).collect();
        let is_new = starts && digits.parse::<usize>().is_ok_and(|number| number >= given);
        let taken = if is_new { 1 + digits.len() } else { 1 };
        let word = &rest[..taken];
        if is_new {
            let known = names.iter().position(|name| name == word);
            let at = known.unwrap_or_else(|| {
                names.push(word.to_string());
                names.len() - 1
            });
            out += &format!("new{}", at + 1);
        } else {
            out += word;
        }
        rest = &rest[taken..];
    }
    out
}

#[test]
fn s3_37_the_operands_of_a_recipe_go_in_its_order() {
    // Of two immediates, the `try` operand stays.
    let got = after("sm_90", "  IMAD d=r1 a=0x11 b=0x22 c=r2");
    assert_eq!(got, ["MOV d=new1 a=0x11", "IMAD d=r1 a=new1 b=0x22 c=r2"]);
    let got = after("sm_90", "  SHF{dir=L itype=U32} d=r1 a=0x11 b=r2 c=0x22");
    assert_eq!(got.len(), 2, "{got:?}");
    // Both the addend and the multiplicand need the single constant slot.
    let got = after("sm_90", "  FFMA d=r1 a=r2 b=c[0][0x160] c=0x3f800000");
    assert_eq!(got.len(), 2, "{got:?}");
}

#[test]
fn s3_38_all_words_of_a_store_go_in_registers() {
    let got = after("sm_90", "  STG{e=E size=64} a={r1,r2} off=0x0 b=0x1122334455667788");
    assert_eq!(
        got,
        ["MOV d=new1 a=0x55667788", "MOV d=new2 a=0x11223344", "STG{size=64 e=E} a={r1,r2} off=0x0 b={new1,new2}"]
    );
    for zeros in ["STG{e=E}", "STG{e=E size=64}", "STG{e=E size=128}"] {
        assert_eq!(after("sm_90", &format!("  {zeros} a={{r1,r2}} off=0x0 b=Z")).len(), 1, "{zeros}");
    }
}

#[test]
fn s3_41_a_move_from_a_special_register_is_another_opcode() {
    assert_eq!(after("sm_90", "  MOV d=r1 a=s33"), ["S2R d=r1 s=s33"]);
    assert_eq!(after("sm_90", "  UMOV d=u1 a=s37"), ["S2UR d=u1 s=s37"]);
    assert_eq!(after("sm_90", "  UMOV d=u1 a=c[0][0x160]"), ["ULDC d=u1 c=c[0][0x160]"]);
    // The opcode does not support every guard.
    assert_eq!(after("sm_90", "  @p2 UMOV d=u1 a=c[0][0x160]"), ["@p2 UMOV d=u1 a=c[0][0x160]"]);
    assert_eq!(after("sm_90", "  R2UR d=u1 a=0x11"), ["MOV d=new1 a=0x11", "R2UR d=u1 a=new1"]);
    assert_eq!(after("sm_120", "  MOV d=r1 a=c[0][0x160]"), ["LDC d=r1 c=c[0][0x160]"]);
    assert_eq!(after("sm_80", "  MOV d=r1 a=c[0][0x160]"), ["MOV d=r1 a=c[0][0x160]"]);
}

#[test]
fn s3_44_a_uniform_operand_goes_in_a_general_register_where_it_must() {
    let got = after("sm_90", "  IMAD d=r1 a=u3 b=u4 c=r2");
    assert_eq!(got, ["MOV d=new1 a=u3", "IMAD d=r1 a=new1 b=u4 c=r2"]);
    let got = after("sm_90", "  IMAD d=r1 a=u4 b=r2 c=r3");
    assert_eq!(got, ["IMAD d=r1 a=r2 b=u4 c=r3"]);
}

#[test]
fn s3_46_an_absent_operand_stays_absent() {
    let got = after("sm_90", "  BAR{barop=SYNC} a=0x0");
    assert_eq!(got, ["BAR a=0x0"]);
    assert!(Operand::NULL.is_null() && Operand::zero() != Operand::NULL);
    let got = after("sm_90", "  IADD3 d=r1 a=0x11 b=0x22 c=Z");
    assert_eq!(got, ["MOV d=new1 a=0x11", "IADD3 d=r1 a=new1 b=0x22 c=Z"]);
}

#[test]
fn signs_of_immediates_and_orders_of_operands_cost_nothing() {
    assert_eq!(after("sm_90", "  IADD3 d=r1 a=-0x5 b=r2 c=Z"), ["IADD3 d=r1 a=r2 b=0xfffffffb c=Z"]);
    assert_eq!(after("sm_90", "  FADD d=r1 a=-0x3f800000 b=r2"), ["FADD d=r1 a=r2 b=0xbf800000"]);
    assert_eq!(
        after("sm_90", "  ISETP{cmp=LT bool=AND} pu=p1 pv=Z a=0x5 b=r2 pp=Z"),
        ["ISETP{cmp=GT} pu=p1 pv=Z a=r2 b=0x5 pp=Z"]
    );
    assert_eq!(after("sm_90", "  SEL d=r1 a=0x5 b=r2 pp=p3"), ["SEL d=r1 a=r2 b=0x5 pp=!p3"]);
    // a & ~b with the operands swapped.
    assert_eq!(after("sm_90", "  LOP3 d=r1 a=0x5 b=r2 c=Z lut=0x30 pp=!Z"), ["LOP3 d=r1 a=r2 b=0x5 c=Z lut=0xc pp=!Z"]);
}

#[test]
fn s3_43_of_optional_operands_those_that_are_there_are_looked_at() {
    assert_eq!(after("sm_90", "  LDC d=r1 c=c[0][0x160]"), ["LDC d=r1 c=c[0][0x160]"]);
    assert_eq!(after("sm_90", "  LDC d=r1 a=0x8 c=c[0][0x160]"), ["MOV d=new1 a=0x8", "LDC d=r1 a=new1 c=c[0][0x160]"]);
}

#[test]
fn a_constant_is_moved_once_for_neighbours() {
    let got = after("sm_90", "  IMAD d=r1 a=0x11 b=0x22 c=r2\n  IMAD d=r3 a=0x11 b=0x33 c=r2");
    assert_eq!(got, ["MOV d=new1 a=0x11", "IMAD d=r1 a=new1 b=0x22 c=r2", "IMAD d=r3 a=new1 b=0x33 c=r2"]);
}

#[test]
fn an_offset_that_does_not_fit_goes_to_the_address() {
    let got = after("sm_90", "  LDS d=r1 a=r2 off=0x12345678");
    assert_eq!(got.len(), 2, "{got:?}");
    assert!(got[0].contains("IADD3 ") && got[0].contains("a=r2 b=0x12345678") && got[1].contains("off=0x0"), "{got:?}");
    let got = after("sm_90", "  LDG{e=E} d=r1 a={r2,r3} off=0x112345678");
    assert_eq!(got.len(), 3, "{got:?}");
    assert!(
        got[0].contains("a=r2 b=0x12345678") && got[1].contains("IADD3{x=X}") && got[1].contains("a=r3 b=0x1"),
        "{got:?}"
    );
    assert_eq!(after("sm_90", "  LDS d=r1 a=r2 off=0x123456").len(), 1);
}

/// The predicate of a minimum selects an operand, so these cannot be swapped.
#[test]
fn operands_stay_where_a_result_says_which_is_which() {
    let got = after("sm_100", "  VIMNMX d=r1 pu=p2 a=0x5 b=r3 pp=Z");
    assert_eq!(got, ["MOV d=new1 a=0x5", "VIMNMX d=r1 pu=p2 a=new1 b=r3 pp=Z"]);
    let got = after("sm_90", "  DSETP{cmp=MIN bool=AND} pu=p1 pv=p2 a=0x4000000000000000 b={r3,r4} pp=Z");
    assert_eq!(got.len(), 3, "{got:?}");
    assert!(got[2].contains("cmp=MIN") && got[2].contains("b={r3,r4}"), "{got:?}");
    assert_eq!(after("sm_100", "  VIMNMX d=r1 a=0x5 b=r3 pp=Z"), ["VIMNMX d=r1 a=r3 b=0x5 pp=Z"]);
}

/// The upper word of a 32-bit field is unknown: ptxas never writes one.
#[test]
fn a_wide_integer_goes_in_registers() {
    let got = after("sm_90", "  IMAD_WIDE d={r1,r2} a=r3 b=r4 c=0x80000000");
    assert_eq!(got, ["MOV d=new1 a=0x80000000", "MOV d=new2 a=Z", "IMAD_WIDE d={r1,r2} a=r3 b=r4 c={new1,new2}"]);
}

#[test]
fn s3_49_moves_stand_in_order_before_their_instruction() {
    let got = after("sm_90", "  NOP\n  FMNMX d=r1 a=0x3f800000 b=0x40000000 pp=q4\n  NOP");
    assert_eq!(got[0], "NOP");
    assert_eq!(got[1], "MOV d=new1 a=0x3f800000");
    assert!(got[2].starts_with("PLOP3 pu=new2") && got[2].contains("pc=q4"), "{got:?}");
    assert_eq!(got[3..], ["FMNMX d=r1 a=new1 b=0x40000000 pp=new2", "NOP"]);
}

#[test]
fn s3_50_a_guard_comes_first_and_a_constant_one_goes() {
    let got = after("sm_90", "  @!q2 IADD3 d=r1 a=0x11 b=0x22 c=Z");
    assert!(got[0].starts_with("PLOP3 pu=new1") && got[0].contains("pc=q2"), "{got:?}");
    assert_eq!(got[1..], ["MOV d=new2 a=0x11", "@!new1 IADD3 d=r1 a=new2 b=0x22 c=Z"]);
    assert_eq!(after("sm_90", "  @Z IADD3 d=r1 a=0x11 b=r2 c=Z"), ["IADD3 d=r1 a=r2 b=0x11 c=Z"]);
    assert_eq!(after("sm_90", "  @!Z IMAD d=r1 a=0x11 b=0x22 c=r2"), Vec::<String>::new());
}

#[test]
fn a_uniform_operand_is_made_only_where_lanes_are_together_and_agree() {
    let got = after("sm_90", "  S2R d=r1 s=s37\n  UIADD3 d=u2 a=u3 b=r1 c=Z");
    assert!(got[1].starts_with("R2UR d=new1") && got[2].starts_with("UIADD3"), "{got:?}");
    let got = after("sm_90", "  S2R d=r1 s=s33\n  UIADD3 d=u2 a=u3 b=r1 c=Z");
    assert_eq!(got.len(), 2, "lanes have different values: {got:?}");
    let mut function: Function =
        text::parse("function k sm_90\nb0:\n  S2R d=r1 s=s33\n  UIADD3 d=u2 a=u3 b=r1 c=Z\n  EXIT\n").unwrap();
    legalized(&mut function);
    let refused = sassafras::pass::run_one(&mut function, "SetAfterLegalization").unwrap_err();
    assert!(refused.contains("operation UIADD3 has no encoding on sm_90"), "{refused}");
    assert!(refused.contains("its operand b must be the same in all lanes"), "{refused}");
}

#[test]
fn exchanges_and_signs_compute_the_same_on_the_machine() {
    for target in built() {
        compare::run_on(target);
    }
}

#[test]
fn widths_of_tried_operands_are_fixed() {
    for op in opcodes() {
        let fixed = |width: Width| matches!(width, Width::Words(_) | Width::Src);
        assert!(
            op.info().roles.iter().filter(|r| r.direction == Direction::Use).all(|r| fixed(r.width)),
            "{}",
            op.name()
        );
    }
}
