//! Every form of the encoding tables without NVIDIA's tools: random legal words decode, encode,
//! print and parse without loss, on every target with an encoder.

use crate::words;
use sassafras::sass;
use sassafras::tables::Target;
use sassafras::tables::encoding::{FORMS, Form};
use sassafras::tables::targets::TARGETS;

/// Random words per form and target: 8, and 200 with `SASSAFRAS_ORACLE=all`.
fn samples() -> usize {
    if std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all") { 200 } else { 8 }
}

/// Calls `judge` with random words of every form on every target; fails with the first errors.
fn each_word(mut judge: impl FnMut(&Target, u128) -> Result<(), String>) {
    let mut wrong = Vec::new();
    let (mut count, samples) = (0, samples());
    for target in TARGETS.iter().filter(|t| t.generation.is_some()) {
        let mut random = words::Random::new(u64::from(target.column) + 1);
        let here = |f: &&Form| f.is_on(target) && !f.alias;
        for form in FORMS.iter().filter(here) {
            for _ in 0..samples {
                let word = words::random_word(form, target, &mut random);
                count += 1;
                if let Err(why) = judge(target, word) {
                    wrong.push(format!("{} {} {word:032x}: {why}", target.name, form.op.name()));
                }
            }
        }
    }
    assert!(count > 50_000, "only {count} words");
    let shown = wrong.len().min(20);
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..shown].join("\n"));
}

#[test]
fn encode_undoes_decode() {
    each_word(|target, word| {
        let inst = sass::decode(target, word).map_err(|e| e.to_string())?;
        let again = sass::encode(target, &inst).map_err(|e| e.to_string())?;
        if again == word { Ok(()) } else { Err(format!("encodes to {again:032x}")) }
    });
}

#[test]
fn parse_undoes_print() {
    each_word(|target, word| {
        let inst = sass::decode(target, word).map_err(|e| e.to_string())?;
        let text = sass::text(target, &inst, 0x40, None) + &sass::hidden(target, &inst);
        let parsed = sass::parse(target, &text, 0x40, None).map_err(|e| e.to_string())?;
        let parsed = sass::Inst { ctrl: inst.ctrl, ..parsed };
        if parsed == inst {
            Ok(())
        } else {
            Err(format!(
                "{text} parses to {}",
                sass::encode(target, &parsed).map_or_else(|e| e.to_string(), |w| format!("{w:032x}"))
            ))
        }
    });
}

#[test]
fn a_misfit_is_told_by_opcode_operand_and_reason() {
    use sass::{Arg, Inst};
    use sassafras::tables::{Mod, Op, Role};
    let on = |name: &str| Target::by_name(name).expect("a target");
    let add = Inst::new(Op::IADD3).with(Role::D, Arg::reg(0)).with(Role::A, Arg::reg(1)).with(Role::C, Arg::reg(2));
    let said = |target: &str, inst: &Inst| sass::encode(on(target), inst).map_err(|e| e.message);
    let constant = add.with(Role::B, Arg::constant(0, 0x160));
    assert!(said("sm_75", &constant).is_ok());
    let message = said("sm_100", &constant).unwrap_err();
    assert_eq!(message, "no form of IADD3 on sm_100 takes as `b` a constant where it has a register");
    let wide = add.with(Role::B, Arg::imm(0x1_0000_0000));
    let message = said("sm_75", &wide).unwrap_err();
    assert!(message.starts_with("no form of IADD3 on sm_75 takes as `b`"), "{message}");
    let message = said("sm_75", &add.with(Role::B, Arg::reg(3)).modified(Mod::Wrap, 1)).unwrap_err();
    assert_eq!(message, "no form of IADD3 on sm_75 takes `wrap` .W");
    assert_eq!(said("sm_75", &Inst::new(Op::MOV_64)).unwrap_err(), "MOV_64 has no encoding on sm_75");
    // The opcode's category allows no uniform register there.
    let uniform = add.with(Role::A, Arg::ureg(4)).with(Role::B, Arg::reg(3));
    let message = said("sm_90", &uniform).unwrap_err();
    assert_eq!(message, "no form of IADD3 on sm_90 takes as `a` a register of file U: its category, 489, has R");
}

#[test]
fn text_that_no_form_prints_is_refused() {
    let target = Target::by_name("sm_90").expect("a target");
    let said = |line: &str| sass::parse(target, line, 0, None).map_err(|e| e.message);
    assert!(said("IADD3 R0, R1, 0x10, RZ ;").is_ok());
    assert_eq!(said("FROB R0").unwrap_err(), "`FROB R0`: no such opcode");
    assert_eq!(
        said("IADD3.FTZ R0, R1, R2, R3").unwrap_err(),
        "`IADD3.FTZ R0, R1, R2, R3`: no form has these modifiers"
    );
    assert_eq!(said("IADD3 R0, R1, R2").unwrap_err(), "`IADD3 R0, R1, R2`: no form takes these operands");
    // The alias is for other operands.
    assert_eq!(said("IMAD.MOV R0, R1, R2, R3").unwrap_err(), "`IMAD.MOV R0, R1, R2, R3`: no form takes these operands");
}
