//! Compares instructions that have operands of every kind with the same instructions on registers
//! only, on the simulator.
//!
//! A kernel has a marker (BREV) for each result. In the operand legalization phase, a wrapper
//! around the target's backend replaces each marker by an instruction, alternating between
//! registers only and the chosen operands, and then calls the target's backend. Both results must
//! be equal.

use super::build::{Put, instruction, kinds, registers, sources};
use super::opcodes;
use super::words::Random;
use sassafras::compile::{Options, compile};
use sassafras::legal::{OuterBackend, SmBackend};
use sassafras::ori::{Block, File, Function, InstId, Operand};
use sassafras::pipeline::encodable::is_legal;
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};
use sassafras::tables::{Feature, Mod, Op, Prop, Role, Target, value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest number of instructions per opcode.
const MOST: usize = 40;

/// One instruction: its sources with values and signs, and the choice of its modifiers.
#[derive(Clone, Debug)]
struct Case {
    op: Op,
    puts: Vec<Put>,
    values: Vec<u64>,
    signs: Vec<bool>,
    choice: u64,
}

/// Values of the parameters behind constants and uniform registers: 64-bit ones, then 32-bit ones.
const WIDE: [u64; 3] = [0x4008_0000_0000_0000, 0xc014_0000_0000_0001, 0x3fe0_1234_5678_9abc];
const NARROW: [u32; 3] = [0x4049_0fdb, 0xfff0_1234, 0x0000_0007];

fn cases(target: &'static Target) -> Vec<Case> {
    let mut random = Random::new(u64::from(target.column) + 99);
    let mut cases = Vec::new();
    for op in opcodes() {
        let roles = sources(op);
        let all = kinds(roles.len());
        for _ in 0..MOST.min(all.len()) {
            let puts = all[random.below(all.len() as u64) as usize].clone();
            let value = |random: &mut Random, at: usize, words: usize| match (puts[at], words) {
                (Put::Const | Put::Uniform, 1) => u64::from(NARROW[at]),
                (Put::Const | Put::Uniform, _) => WIDE[at],
                (Put::Zero, _) => 0,
                (Put::Small, _) => random.below(32),
                (Put::Float, 1) => u64::from([0x3f80_0000u32, 0xbf00_0000, 0x4110_0000][random.below(3) as usize]),
                (Put::Float, _) => [0x3ff0_0000_0000_0000, 0xc008_0000_0000_0000][random.below(2) as usize],
                (_, 1) => random.next() >> 32,
                _ => random.next(),
            };
            let values = roles.iter().enumerate().map(|(at, (_, words))| value(&mut random, at, *words)).collect();
            let signs = roles.iter().map(|_| random.below(3) == 0).collect();
            cases.push(Case { op, puts, values, signs, choice: random.next() });
        }
    }
    cases
}

/// Replaces the markers by the instructions, and counts those that the target does not have.
#[derive(Debug)]
struct Inserts(Vec<Case>, AtomicUsize);

impl OuterBackend for Inserts {
    fn late_expansion_unsupported_ops2(&self, inner: &dyn SmBackend, function: &mut Function) {
        let mut marker = 0;
        for block in function.layout().to_vec() {
            for inst in std::mem::take(&mut function[block]) {
                if function[inst].op != Op::BREV {
                    function.append(block, inst);
                    continue;
                }
                let plain = marker % 2 == 0;
                let written = write(function, block, &self.0[marker / 2], plain, function.arg(inst, Role::D));
                self.1.fetch_add(usize::from(plain && !written), Ordering::Relaxed);
                marker += 1;
            }
        }
        assert_eq!(marker, 2 * self.0.len());
        inner.late_expansion_unsupported_ops2(function);
    }
}

fn put(function: &mut Function, block: Block, op: Op, args: &[(Role, Operand)]) -> InstId {
    let inst = instruction(function, op, args);
    function.append(block, inst);
    inst
}

/// A value in registers.
fn in_registers(function: &mut Function, block: Block, value: u64, words: usize) -> Operand {
    let whole = registers(function, File::R, words);
    let regs = match whole.as_vector() {
        Some(vector) => function.vector_regs(vector).iter().map(|reg| Operand::reg(*reg)).collect(),
        None => vec![whole],
    };
    for (at, reg) in regs.into_iter().enumerate() {
        let word = function.imm(value >> (32 * at) & 0xffff_ffff);
        put(function, block, Op::MOV, &[(Role::D, reg), (Role::A, word)]);
    }
    whole
}

/// The parameter that a constant at this position reads.
fn parameter(function: &Function, words: usize, at: usize) -> Operand {
    let base = function.target().info().unwrap().param_base as usize;
    Operand::constant(0, (base + if words == 1 { 32 + 4 * at } else { 8 + 8 * at }) as u16)
}

fn drawn(function: &mut Function, block: Block, case: &Case, at: usize, words: usize) -> Operand {
    match case.puts[at] {
        Put::Reg => in_registers(function, block, case.values[at], words),
        Put::Const => parameter(function, words, at),
        Put::Zero => Operand::zero(),
        Put::Uniform => {
            let to = registers(function, File::UR, words);
            let from = parameter(function, words, at);
            let op = if function.target().has(Feature::UniformLoadByScoreboard) { Op::LDCU } else { Op::ULDC };
            let load = put(function, block, op, &[(Role::D, to), (Role::C, from)]);
            if words == 2 {
                function[load].mods.set(Mod::Size, value::size::_64);
            }
            to
        }
        Put::Small | Put::Large | Put::Float => function.imm(case.values[at]),
    }
}

/// Emits one instruction with its result in `d`; a zero if it is not encodable even on registers
/// only. Returns whether it is.
fn write(function: &mut Function, block: Block, case: &Case, plain: bool, d: Operand) -> bool {
    let roles = sources(case.op);
    let regs: Vec<Operand> = roles
        .iter()
        .enumerate()
        .map(|(at, (_, words))| in_registers(function, block, case.values[at], *words))
        .collect();
    let args: Vec<(Role, Operand)> = roles.iter().zip(&regs).map(|((role, _), reg)| (*role, *reg)).collect();
    let inst = instruction(function, case.op, &args);
    modify(function, inst, case);
    let mut signs = vec![false; roles.len()];
    for (at, sign) in case.signs.iter().enumerate().filter(|(_, sign)| **sign) {
        function.set_arg(inst, roles[at].0, regs[at].negated());
        signs[at] = *sign && is_legal(function, inst);
        if !signs[at] {
            function.set_arg(inst, roles[at].0, regs[at]);
        }
    }
    if !is_legal(function, inst) {
        put(function, block, Op::MOV, &[(Role::D, d), (Role::A, Operand::zero())]);
        return false;
    }
    if !plain {
        for (at, (role, words)) in roles.iter().enumerate() {
            let operand = drawn(function, block, case, at, *words);
            function.set_arg(inst, *role, if signs[at] { operand.negated() } else { operand });
        }
    }
    function.append(block, inst);
    result(function, block, inst, d);
    true
}

/// Comparison, truth table, selecting predicate.
fn modify(function: &mut Function, inst: InstId, case: &Case) {
    if matches!(case.op, Op::ISETP | Op::FSETP | Op::DSETP) {
        let compared = [
            value::cmp::LT,
            value::cmp::GE,
            value::cmp::EQ,
            value::cmp::GT,
            value::cmp::LE,
            value::cmp::MIN,
            value::cmp::MAX,
        ];
        function[inst].mods.set(Mod::Cmp, compared[(case.choice % if case.op == Op::DSETP { 7 } else { 5 }) as usize]);
    }
    if case.op.role_index(Role::Lut).is_some() {
        let lut = function.imm(case.choice >> 8 & 0xff);
        function.set_arg(inst, Role::Lut, lut);
    }
    if case.op == Op::IADD3 && case.choice >> 30 & 1 != 0 {
        let carry = registers(function, File::P, 1);
        function.set_arg(inst, Role::Pu, carry);
    }
    if matches!(case.op, Op::IADD3 | Op::IMAD) && case.choice >> 31 & 1 != 0 {
        function[inst].mods.set(Mod::X, value::x::X);
        let carry_in = if case.choice >> 32 & 1 != 0 { Operand::always() } else { Operand::never() };
        function.set_arg(inst, Role::Pp, carry_in);
        if case.op == Op::IADD3 {
            function.set_arg(inst, Role::Pq, Operand::never());
        }
    }
    let selects = case.op.role_index(Role::Pp).is_some() && !case.op.has(Prop::Commutative);
    if selects && case.choice >> 20 & 1 != 0 && matches!(case.op, Op::SEL | Op::FSEL) {
        function.set_arg(inst, Role::Pp, Operand::never());
    }
}

/// The result as one word: a predicate as 0 or 1, both words of a pair combined, or a word combined
/// with its carry.
fn result(function: &mut Function, block: Block, inst: InstId, d: Operand) {
    let (made, pu) = (function.arg(inst, Role::D), function.arg(inst, Role::Pu));
    if let Some(vector) = made.as_vector() {
        let [low, high] = [0, 1].map(|at| Operand::reg(function.vector_regs(vector)[at]));
        let factor = in_registers(function, block, 0x9e37_79b1, 1);
        put(function, block, Op::IMAD, &[(Role::D, d), (Role::A, low), (Role::B, factor), (Role::C, high)]);
    } else if made.is_null() {
        let one = function.imm(1);
        put(
            function,
            block,
            Op::SEL,
            &[(Role::D, d), (Role::A, Operand::zero()), (Role::B, one), (Role::Pp, pu.inverted())],
        );
    } else if pu.is_null() {
        put(function, block, Op::MOV, &[(Role::D, d), (Role::A, made)]);
    } else {
        let (carry, one) = (registers(function, File::R, 1), function.imm(1));
        let args = [(Role::D, carry), (Role::A, Operand::zero()), (Role::B, one), (Role::Pp, pu.inverted())];
        put(function, block, Op::SEL, &args);
        let factor = in_registers(function, block, 0x9e37_79b1, 1);
        put(function, block, Op::IMAD, &[(Role::D, d), (Role::A, made), (Role::B, factor), (Role::C, carry)]);
    }
}

/// A kernel with this many markers, each with a store of its result.
fn kernel(markers: usize) -> String {
    let mut text = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u64 d0, .param .u64 d1, .param .u64 d2, \
                    .param .u32 c0, .param .u32 c1, .param .u32 c2) {\n.reg .b64 %o; .reg .b32 %x, %r;\nld.param.u64 %o, [o]; mov.u32 %x, %tid.x;\n"
        .to_string();
    for at in 0..markers {
        text += &format!("brev.b32 %r, %x; st.global.u32 [%o+{}], %r;\n", 4 * at);
    }
    text + "ret; }\n"
}

/// Compiles and runs the cases of a target.
pub fn run_on(target: &'static Target) {
    let cases = cases(target);
    let inserts = Arc::new(Inserts(cases.clone(), AtomicUsize::new(0)));
    let options =
        Options { opt_level: 0, verify_ir: true, outer_backend: Some(inserts.clone()), ..Options::new(target.name) };
    let output =
        compile(&kernel(2 * cases.len()), &options).unwrap_or_else(|e| panic!("{}: {}", target.name, e[0].message));
    let mut args = vec![ArgValue::Buffer { bytes: vec![0; 8 * cases.len()], writable: true }];
    args.extend(WIDE.map(|bits| ArgValue::Scalar { bytes: bits.to_le_bytes().to_vec() }));
    args.extend(NARROW.map(|bits| ArgValue::Scalar { bytes: bits.to_le_bytes().to_vec() }));
    let shape = Shape { grid: [1; 3], block: [1, 1, 1], smem: 0 };
    run(&output.cubin, "k", shape, &mut args).unwrap_or_else(|e| panic!("{}: {e}", target.name));
    let ArgValue::Buffer { bytes, .. } = &args[0] else { panic!() };
    let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    let wrong: Vec<String> = words
        .chunks_exact(2)
        .zip(&cases)
        .filter(|(pair, _)| pair[0] != pair[1])
        .map(|(pair, case)| {
            format!("{} {case:x?}: {:08x} in registers, {:08x} as drawn", target.name, pair[0], pair[1])
        })
        .collect();
    let built = cases.len() - inserts.1.load(Ordering::Relaxed);
    let computed = words.iter().filter(|word| **word != 0).count();
    assert!(computed > built, "{}: {computed} of {} words are not 0", target.name, 2 * built);
    assert!(2 * built > cases.len(), "{}: {built} of {} cases are built", target.name, cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong[..wrong.len().min(10)].join("\n"));
}
