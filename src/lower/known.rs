//! What a function's text says of its registers before anything is lowered: which instructions
//! write them, and which have one value wherever they are read.

use crate::ptx::ast::{Address, AddressBase, Constant, Instruction, Operand, OperandKind, RegId, Statement};
use crate::sorted::SortedMap;
use crate::tables::ptx::{Op, SpecialRegister};

/// The registers that one `mov` writes, whatever the guard of what reads them, and its constant.
pub fn constants(body: &[Statement]) -> SortedMap<RegId, u64> {
    written_once(body, |inst| match inst.operands.as_slice() {
        [to, from] if inst.op == Op::Mov => Some((register(to)?, literal(from)?)),
        _ => None,
    })
}

/// How many rounds follow `selp` of what `selp` writes, and how many constants a register may have.
const ROUNDS: usize = 8;
const MOST: usize = 4;

/// The registers that one `selp` writes, of constants or of such registers, and all constants that
/// they may have.
pub fn choices(body: &[Statement]) -> SortedMap<RegId, Vec<u64>> {
    let selects = written_once(body, |inst| match inst.operands.as_slice() {
        [to, first, second, _] if inst.op == Op::Selp => Some((register(to)?, [first.clone(), second.clone()])),
        _ => None,
    });
    let mut known: SortedMap<RegId, Vec<u64>> = SortedMap::new();
    for _ in 0..ROUNDS {
        let before = known.len();
        for (to, sources) in &selects {
            if known.contains_key(to) {
                continue;
            }
            let of = |source: &Operand| match literal(source) {
                Some(value) => Some(vec![value]),
                None => known.get(&register(source)?).cloned(),
            };
            let [Some(mut values), Some(more)] = [of(&sources[0]), of(&sources[1])] else { continue };
            values.extend(more);
            values.sort_unstable();
            values.dedup();
            if values.len() <= MOST {
                known.insert(*to, values);
            }
        }
        if known.len() == before {
            break;
        }
    }
    known
}

fn register(operand: &Operand) -> Option<RegId> {
    match &operand.kind {
        OperandKind::Register(used) => Some(used.register),
        _ => None,
    }
}

fn literal(operand: &Operand) -> Option<u64> {
    match operand.kind {
        OperandKind::Constant(Constant::Int { bits, .. }) => Some(bits),
        _ => None,
    }
}

/// The registers that one unguarded instruction writes, of which `value` knows something.
fn written_once<T>(body: &[Statement], value: impl Fn(&Instruction) -> Option<(RegId, T)>) -> SortedMap<RegId, T> {
    let unguarded = instructions(body).filter(|inst| inst.guard.is_none());
    let mut known: SortedMap<RegId, T> = unguarded.filter_map(value).collect();
    if known.is_empty() {
        return known;
    }
    let mut writes: SortedMap<RegId, u32> = SortedMap::new();
    for inst in instructions(body) {
        written(inst, &mut |reg| {
            if known.contains_key(&reg) {
                *writes.entry(reg).or_default() += 1;
            }
        });
    }
    known.retain(|reg, _| writes.get(reg) == Some(&1));
    known
}

/// Whether an instruction reads a special register about the shared memory that the driver
/// reserves.
pub fn asks_for_reserved_memory(body: &[Statement]) -> bool {
    use SpecialRegister as S;
    let of_reserved = |operand: &Operand| {
        matches!(
            operand.kind,
            OperandKind::Special(
                S::ReservedSmemOffsetBegin
                    | S::ReservedSmemOffsetEnd
                    | S::ReservedSmemOffsetCap
                    | S::ReservedSmemOffset0
                    | S::ReservedSmemOffset1
            )
        )
    };
    instructions(body).any(|inst| inst.operands.iter().any(of_reserved))
}

/// The instructions of a body.
pub fn instructions(body: &[Statement]) -> impl Iterator<Item = &Instruction> {
    body.iter().filter_map(|statement| match statement {
        Statement::Instruction(inst) => Some(&**inst),
        _ => None,
    })
}

/// Calls `f` for each register that an instruction may write: results stand first, and a call names
/// several operands that it may write.
pub fn written(inst: &Instruction, f: &mut dyn FnMut(RegId)) {
    let count = if inst.op == Op::Call { inst.operands.len() } else { 1 };
    inst.operands.iter().take(count).for_each(|operand| registers(operand, f));
}

/// Calls `f` for each register that an operand names.
pub fn registers(operand: &Operand, f: &mut dyn FnMut(RegId)) {
    match &operand.kind {
        OperandKind::Register(used) => f(used.register),
        OperandKind::Address(Address { base, rest, .. }) => {
            if let AddressBase::Register(register) = base {
                f(*register);
            }
            rest.iter().for_each(|operand| registers(operand, f));
        }
        OperandKind::Vector(list) | OperandKind::List(list) => list.iter().for_each(|operand| registers(operand, f)),
        OperandKind::Pair(pair) => {
            registers(&pair.0, f);
            registers(&pair.1, f);
        }
        OperandKind::Special(_)
        | OperandKind::Constant(_)
        | OperandKind::Symbol { .. }
        | OperandKind::Label(_)
        | OperandKind::Sink => {}
    }
}
