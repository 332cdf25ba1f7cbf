//! Builds functions of one instruction.

use sassafras::ori::{File, Function, InstId, Operand};
use sassafras::sass::{self, Arg, ArgKind};
use sassafras::tables::ori::{Absent, Class, Direction, Width};
use sassafras::tables::{Op, Prop, Role, Target};

/// The kind of a source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Reg,
    Uniform,
    Const,
    Zero,
    Small,
    Large,
    Float,
}

impl Put {
    pub fn is_immediate(self) -> bool {
        matches!(self, Put::Small | Put::Large | Put::Float)
    }
}

const PUTS: [Put; 7] = [Put::Reg, Put::Uniform, Put::Const, Put::Zero, Put::Small, Put::Large, Put::Float];

/// Every combination for this many sources.
pub fn kinds(count: usize) -> Vec<Vec<Put>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        all = all.iter().flat_map(|some: &Vec<Put>| PUTS.map(|put| [some.as_slice(), &[put]].concat())).collect();
    }
    all
}

/// The sources in general registers, with their widths in words.
pub fn sources(op: Op) -> Vec<(Role, usize)> {
    let used = op.info().roles.iter().filter(|r| r.direction == Direction::Use && r.class == Class::Reg);
    used.map(|r| (r.role, if let Width::Words(words) = r.width { usize::from(words) } else { 1 })).collect()
}

pub fn registers(function: &mut Function, file: File, words: usize) -> Operand {
    match words {
        1 => Operand::reg(function.new_reg(file)),
        _ => Operand::vector(function.new_vector(file, words)),
    }
}

/// An operand of a kind.
pub fn source(function: &mut Function, put: Put, words: usize, at: usize) -> Operand {
    match put {
        Put::Reg => registers(function, File::R, words),
        Put::Uniform => registers(function, File::UR, words),
        Put::Const => Operand::constant(0, 0x160 + 8 * at as u16),
        Put::Zero => Operand::zero(),
        Put::Small => function.imm(5 + at as u64),
        Put::Large => function.imm((0x1234_5678 + at as u64) * if words > 1 { 0x1_0000_0001 } else { 1 }),
        Put::Float => function.imm((0x3f80 + 0x10 * at as u64) << if words > 1 { 48 } else { 16 }),
    }
}

/// An instruction with these sources, not yet in a block; its other required operands are
/// registers, PT, or zero.
pub fn instruction(function: &mut Function, op: Op, sources: &[(Role, Operand)]) -> InstId {
    let inst = function.make(op);
    for role in op.info().roles.iter().filter(|role| role.absent == Absent::Required) {
        let words = if let Width::Words(words) = role.width { usize::from(words) } else { 1 };
        let operand = match (role.direction, role.class) {
            (Direction::Use, Class::Reg) => continue,
            (Direction::Def, Class::Pred) => registers(function, File::P, 1),
            (_, Class::Pred) => Operand::always(),
            (_, Class::Imm) => function.imm(0),
            (_, Class::Uniform) => registers(function, File::UR, words),
            _ => registers(function, File::R, words),
        };
        function.set_arg(inst, role.role, operand);
    }
    sources.iter().for_each(|(role, operand)| function.set_arg(inst, *role, *operand));
    inst
}

/// A function of one instruction with these sources, and an exit.
pub fn line(target: &'static Target, op: Op, roles: &[(Role, usize)], puts: &[Put]) -> (Function, InstId) {
    let mut function = Function::new("k", target);
    let block = function.new_block();
    let sources: Vec<(Role, Operand)> = roles
        .iter()
        .zip(puts)
        .enumerate()
        .map(|(at, ((role, words), put))| (*role, source(&mut function, *put, *words, at)))
        .collect();
    let inst = instruction(&mut function, op, &sources);
    function.append(block, inst);
    let end = function.make(Op::EXIT);
    function.append(block, end);
    (function, inst)
}

/// Converts a decoded word to Ori; `None` if Ori cannot express its operands.
pub fn of_word(target: &'static Target, word: u128) -> Option<(Function, InstId)> {
    let machine = sass::decode(target, word).ok()?;
    let mut function = Function::new("k", target);
    let block = function.new_block();
    let inst = function.make(machine.op);
    function[inst].mods = machine.mods;
    if (machine.guard.pred, machine.guard.not) != (7, false) {
        let file = if machine.guard.upred { File::UP } else { File::P };
        let guard = Operand::reg(function.new_reg(file));
        function[inst].guard = if machine.guard.not { guard.inverted() } else { guard };
    }
    for role in machine.op.info().roles {
        let arg = machine.arg(role.role);
        let words = usize::from(function.width(inst, role));
        let operand = operand(&mut function, arg, words)?;
        function.set_arg(inst, role.role, operand);
    }
    function.append(block, inst);
    let end = function.make(Op::EXIT);
    function.append(block, end);
    Some((function, inst))
}

fn operand(function: &mut Function, arg: Arg, words: usize) -> Option<Operand> {
    let plain = match arg.kind {
        ArgKind::None => return Some(Operand::NULL),
        ArgKind::Reg | ArgKind::UReg if arg.val == 255 => Operand::zero(),
        ArgKind::Reg => registers(function, File::R, words),
        ArgKind::UReg => registers(function, File::UR, words),
        ArgKind::Pred | ArgKind::UPred if arg.val == 7 => Operand::zero(),
        ArgKind::Pred => Operand::reg(function.new_reg(File::P)),
        ArgKind::UPred => Operand::reg(function.new_reg(File::UP)),
        ArgKind::Bar => Operand::reg(function.new_reg(File::B)),
        ArgKind::Imm => function.imm(arg.val),
        ArgKind::Const => Operand::constant(arg.bank, u16::try_from(arg.val).ok()?),
        ArgKind::Bindless => return None,
        ArgKind::Label => Operand::label(function.entry()),
        ArgKind::Special => Operand::special(arg.val as u32),
    };
    let signed = if arg.abs { plain.absolute() } else { plain };
    let signed = if arg.neg { signed.negated() } else { signed };
    Some(if arg.not { signed.inverted() } else { signed })
}

/// Whether a one-word field holds a two-word integer.
pub fn has_wide_integer(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let mut wide = op.info().roles.iter().zip(function.args(inst)).filter(|(role, _)| role.width == Width::Words(2));
    !op.has(Prop::Fp64Pipe) && wide.any(|(_, operand)| function.imm_value(*operand).is_some())
}

/// Runs the operand legalization phase.
pub fn legalized(function: &mut Function) {
    let asked = sassafras::legal::Legalization::default();
    let mut cx = sassafras::analysis::PassCx::new(function, sassafras::pass::ENCODER);
    sassafras::legal::phases::late_expansion_unsupported_ops2(&mut cx, &asked).unwrap();
}
