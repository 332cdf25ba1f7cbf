//! Runs small hand-written programs through predecoding and the simulator.

use super::super::super::memory::Global;
use super::super::setup::{Banks, Setup};
use super::super::words::Words;
use super::super::{grid, warp::LANES};
use super::{Lifted, predecode_all};
use crate::sass::{Arg, Inst};
use crate::tables::{Op, Role};

fn lift(inst: Inst, words: &str, special: &str) -> Result<Lifted, String> {
    let mut list = Words::default();
    words.split('.').for_each(|word| list.push("", word));
    Ok(Lifted { inst, words: list, special: special.to_string() })
}

fn plain(op: Op, roles: &[(Role, Arg)], words: &str) -> Result<Lifted, String> {
    lift(roles.iter().fold(Inst::new(op), |inst, (role, arg)| inst.with(*role, *arg)), words, "")
}

/// Runs the code on one warp, which finally stores R10 of each lane; returns these words.
fn results(mut code: Vec<Result<Lifted, String>>) -> Result<Vec<u32>, String> {
    let mut global = Global::default();
    let base = global.allocate("out", vec![0; 4 * LANES], true);
    let mut banks = Banks::default();
    banks.put(0, 0, &base.to_le_bytes());
    code.insert(0, lift(Inst::new(Op::S2R).with(Role::D, Arg::reg(0)), "", "SR_LANEID"));
    let (reg, bank) = (Arg::reg, Arg::constant(0, 0));
    code.push(plain(
        Op::IMAD_WIDE,
        &[(Role::D, reg(2)), (Role::A, reg(0)), (Role::B, Arg::imm(4)), (Role::C, bank)],
        "U32",
    ));
    code.push(plain(Op::STG, &[(Role::A, reg(2)), (Role::Off, Arg::imm(0)), (Role::B, reg(10))], "E"));
    code.push(plain(Op::EXIT, &[], ""));
    let (codes, reasons) = predecode_all(&banks, &code);
    let setup = Setup {
        code: codes,
        reasons,
        banks,
        grid: [1; 3],
        block: [LANES as u32, 1, 1],
        registers: 32,
        shared_bytes: 16,
        reserved_bytes: 0,
        step_limit: 100_000,
        ..Setup::default()
    };
    grid::run(&setup, &mut global).map_err(|fault| fault.to_string())?;
    let bytes = global.bytes_at(base).unwrap_or_default();
    Ok(bytes.chunks_exact(4).map(|w| super::super::super::memory::load(w) as u32).collect())
}

fn less_than(n: u64) -> Result<Lifted, String> {
    let operands = [(Role::Pu, Arg::pred(0, false)), (Role::A, Arg::reg(0)), (Role::B, Arg::imm(n))];
    plain(Op::ISETP, &operands, "LT.U32")
}

fn add(d: u32, a: Arg, b: Arg) -> Result<Lifted, String> {
    plain(Op::IADD3, &[(Role::D, Arg::reg(d)), (Role::A, a), (Role::B, b)], "")
}

fn guarded(lifted: Result<Lifted, String>, not: bool) -> Result<Lifted, String> {
    let mut lifted = lifted?;
    lifted.inst.guard.pred = 0;
    lifted.inst.guard.not = not;
    Ok(lifted)
}

#[test]
fn subtraction_carries_as_no_borrow() {
    let minus = |n| Arg { neg: true, ..Arg::reg(n) };
    let carry = Arg::pred(1, false);
    let low = [(Role::D, Arg::reg(4)), (Role::Pu, carry), (Role::A, Arg::reg(5)), (Role::B, minus(0))];
    let high = [
        (Role::D, Arg::reg(10)),
        (Role::A, Arg::reg(5)),
        (Role::B, Arg { not: true, ..Arg::reg(5) }),
        (Role::Pp, carry),
        (Role::Pq, Arg::pred(7, true)),
    ];
    let got =
        results(vec![add(5, Arg::imm(3), Arg::reg(255)), plain(Op::IADD3, &low, ""), plain(Op::IADD3, &high, "X")]);
    // The high word of 3 - lane with equal high words: 0, or all ones for a borrow.
    let want: Vec<u32> = (0..32).map(|lane| if lane <= 3 { 0 } else { u32::MAX }).collect();
    assert_eq!(got, Ok(want));
}

#[test]
fn arms_of_a_branch_meet_again() {
    let skip = plain(Op::BRA, &[(Role::Target, Arg::label(2 * 16))], "");
    let ballot = [(Role::D, Arg::reg(10)), (Role::Pp, Arg::pred(7, false))];
    let got = results(vec![
        less_than(5),
        plain(Op::BSSY, &[(Role::B, Arg::bar(0)), (Role::Target, Arg::label(4 * 16))], ""),
        guarded(skip, false),
        add(11, Arg::imm(1), Arg::reg(255)),
        plain(Op::NOP, &[], ""),
        plain(Op::BSYNC, &[(Role::B, Arg::bar(0))], ""),
        plain(Op::VOTE, &ballot, "ANY"),
    ]);
    assert_eq!(got, Ok(vec![u32::MAX; 32]));
}

#[test]
fn a_lock_between_lanes_makes_progress() {
    let lock = |d, b, c| {
        let at = [(Role::D, Arg::reg(d)), (Role::A, Arg::reg(255)), (Role::Off, Arg::imm(0))];
        let values = [(Role::B, Arg::reg(b)), (Role::C, Arg::reg(c))];
        [at.as_slice(), &values].concat()
    };
    let taken = [(Role::Pu, Arg::pred(0, false)), (Role::A, Arg::reg(8)), (Role::B, Arg::reg(255))];
    let code = |with_yield: bool| {
        vec![
            add(9, Arg::imm(1), Arg::reg(255)),
            plain(Op::BSSY, &[(Role::B, Arg::bar(0)), (Role::Target, Arg::label(4 * 16))], ""),
            plain(if with_yield { Op::YIELD } else { Op::NOP }, &[], ""),
            plain(Op::ATOMS, &lock(8, 255, 9), "CAS"),
            plain(Op::ISETP, &taken, "NE.U32"),
            guarded(plain(Op::BRA, &[(Role::Target, Arg::label(-4 * 16))], ""), false),
            plain(Op::BSYNC, &[(Role::B, Arg::bar(0))], ""),
            add(10, Arg::reg(10), Arg::imm(7)),
            plain(Op::ATOMS, &lock(8, 255, 255), "EXCH"),
        ]
    };
    let run = |with_yield| results(code(with_yield));
    assert_eq!(run(true), Ok(vec![7; 32]));
    assert!(run(false).is_err_and(|why| why.contains("gave up")), "without YIELD the lock never opens");
}

/// Both halves of a warp put a number of their own into one uniform register, run a loop that is
/// longer than a turn, and read the register behind it.
#[test]
fn a_uniform_register_outlasts_a_loop_that_waits_for_nobody() {
    let half = |number: u64| {
        let above = [(Role::Pu, Arg::pred(1, false)), (Role::A, Arg::reg(9)), (Role::B, Arg::reg(255))];
        let mut back = plain(Op::BRA, &[(Role::Target, Arg::label(-3 * 16))], "");
        if let Ok(back) = &mut back {
            back.inst.guard.pred = 1;
        }
        [
            add(9, Arg::imm(400), Arg::reg(255)),
            plain(Op::UMOV, &[(Role::D, Arg::ureg(4)), (Role::A, Arg::imm(number))], ""),
            add(9, Arg::reg(9), Arg::imm(0xffff_ffff)),
            plain(Op::ISETP, &above, "NE.U32"),
            back,
            add(10, Arg::reg(255), Arg::ureg(4)),
        ]
    };
    let region = [(Role::B, Arg::bar(0)), (Role::Target, Arg::label(14 * 16))];
    let mut code = vec![less_than(16), plain(Op::BSSY, &region, "")];
    code.push(guarded(plain(Op::BRA, &[(Role::Target, Arg::label(7 * 16))], ""), false));
    code.extend(half(5));
    code.push(plain(Op::BRA, &[(Role::Target, Arg::label(6 * 16))], ""));
    code.extend(half(7));
    code.push(plain(Op::BSYNC, &[(Role::B, Arg::bar(0))], ""));
    let want: Vec<u32> = (0..32).map(|lane| if lane < 16 { 7 } else { 5 }).collect();
    assert_eq!(results(code), Ok(want));
}

#[test]
fn mistakes_are_reported_where_they_happen() {
    let load =
        |a, off| plain(Op::LDG, &[(Role::D, Arg::reg(10)), (Role::A, Arg::reg(a)), (Role::Off, Arg::imm(off))], "E");
    let why = results(vec![load(255, 0x40)]).expect_err("no such address");
    assert!(why.contains("out of bounds at 0x40") && why.contains("pc 0x10") && why.contains("lane 0"), "{why}");
    let why = results(vec![load(255, 0x41)]).expect_err("odd");
    assert!(why.contains("misaligned access of 4 bytes at 0x41"), "{why}");
    let why = results(vec![Err("invalid instruction".into())]).expect_err("no instruction");
    assert!(why.contains("invalid instruction at pc 0x10"), "{why}");
    let why = results(vec![plain(Op::IPA, &[], "")]).expect_err("not built");
    assert!(why.contains("does not execute IPA"), "{why}");
    let why = results(vec![plain(Op::BRA, &[(Role::Target, Arg::label(0x1000))], "")]).expect_err("no code");
    assert!(why.contains("past the end of the code"), "{why}");
    let half = guarded(plain(Op::EXIT, &[], ""), true);
    let wait = plain(Op::WARPSYNC, &[(Role::A, Arg::imm(0xffff_ffff))], "");
    let forever = plain(Op::BRA, &[(Role::Target, Arg::label(-16))], "");
    assert_eq!(results(vec![less_than(32), half, wait.clone()]), Ok(vec![0; 32]));
    let why = results(vec![less_than(16), guarded(forever, false), wait]).expect_err("endless");
    assert!(why.contains("gave up after"), "{why}");
    let pair = plain(Op::BSSY, &[(Role::B, Arg::bar(1)), (Role::Target, Arg::label(0))], "");
    let one = plain(Op::BSYNC, &[(Role::B, Arg::bar(1))], "");
    let why = results(vec![less_than(16), pair, guarded(one.clone(), false), one]).expect_err("apart");
    assert!(why.contains("deadlock: no lane can run") && why.contains("at B1"), "{why}");
}
