//! What a host does before the launch of a kernel with shader constants: evaluates their programs
//! over the parameters and sizes of the launch. `patches.c` does the same in C.

use super::ops::int::{Shift, add3, funnel, logic3, product};
use super::ptx::int::quotient;
use super::run::Shape;
use crate::arrays::Each;
use crate::cubin::patches::PatchTable;
use crate::cubin::{self, Cubin};
use crate::tables::patches::{FUNNEL, Program, StepKind};
use crate::tables::ptx::ScalarType;
use std::borrow::Cow;

/// The parameters and sizes of a launch.
pub struct Inputs<'a> {
    /// The parameters, as they stand in the bank.
    pub parameters: &'a [u8],
    /// Threads of a block, then blocks of the grid, by axis.
    pub sizes: [u32; 6],
}

/// The sizes of a launch, in the order in which programs number them.
pub fn sizes(shape: Shape) -> [u32; 6] {
    let ([a, b, c], [d, e, f]) = (shape.block, shape.grid);
    [a, b, c, d, e, f]
}

/// The word that a program leaves. The program has been checked
/// ([`crate::tables::patches::Program::check`]); a missing parameter or word counts as zero.
pub fn evaluate(program: &Program, inputs: &Inputs) -> u32 {
    let mut stack: Vec<u32> = Vec::new();
    for step in &program.0 {
        let mut words = [0; 3];
        for word in words[..step.takes()].iter_mut().rev() {
            *word = stack.pop().unwrap_or(0);
        }
        let [a, b, c] = words;
        stack.push(match step.kind {
            StepKind::Param => {
                let at = step.operand as usize;
                let word = inputs.parameters.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
                word.map_or(0, u32::from_le_bytes)
            }
            StepKind::Launch => inputs.sizes.get(step.operand as usize).copied().unwrap_or(0),
            StepKind::Word => step.operand,
            StepKind::Add => add3(a, b, 0, 0).0,
            StepKind::Carry => add3(a, b, 0, c).1,
            StepKind::Mul => product(a, b, false) as u32,
            StepKind::MulHighU => (product(a, b, false) >> 32) as u32,
            StepKind::MulHighS => (product(a, b, true) >> 32) as u32,
            StepKind::Not => !a,
            StepKind::Logic => logic3(step.operand as u8, a, b, c),
            StepKind::Funnel => {
                let [right, signed, wide, wrap, high] = FUNNEL.each(|bit| step.operand & bit != 0);
                funnel(Shift { right, signed, wide, wrap, high }, a, b, c)
            }
            StepKind::DivU => quotient(ScalarType::U32, a.into(), b.into()) as u32,
            StepKind::DivS => quotient(ScalarType::S32, a.into(), b.into()) as u32,
        });
    }
    stack.pop().unwrap_or(0)
}

/// The words of a table with their offsets in its bank.
pub fn words(table: &PatchTable, inputs: &Inputs) -> Vec<(u32, u32)> {
    table.words.iter().map(|word| (word.offset, evaluate(&word.program, inputs))).collect()
}

/// A cubin with the words of a kernel in its constant bank, for a driver that loads it: one for
/// each launch whose parameters or sizes are others. `parameters` are those of the launch, in
/// order.
///
/// # Errors
///
/// A damaged table, or one for a bank that no section of the kernel fills.
pub fn patched<'a>(
    bytes: &'a [u8],
    kernel: &str,
    shape: Shape,
    parameters: &[Vec<u8>],
) -> Result<Cow<'a, [u8]>, String> {
    let mut cubin: Cubin = cubin::read(bytes).map_err(|error| error.to_string())?;
    let Some(table) = PatchTable::of(&cubin, kernel)? else { return Ok(Cow::Borrowed(bytes)) };
    let Some(function) = cubin.functions.iter_mut().find(|function| function.name == kernel) else {
        return Ok(Cow::Borrowed(bytes));
    };
    let mut buffer = vec![0; function.param_bytes as usize];
    for (param, bytes) in function.params.iter().zip(parameters) {
        let at = usize::from(param.offset);
        let room = buffer.get_mut(at..at + bytes.len()).ok_or("an argument lies outside of the parameters")?;
        room.copy_from_slice(bytes);
    }
    let image = function.constant2.as_mut().filter(|_| table.bank == 2);
    let image = image.ok_or_else(|| format!("{kernel} has no section for bank {}", table.bank))?;
    for (offset, word) in words(&table, &Inputs { parameters: &buffer, sizes: sizes(shape) }) {
        let at = offset as usize;
        let room = image.bytes.get_mut(at..at + 4).ok_or("a word lies outside of the bank's section")?;
        room.copy_from_slice(&word.to_le_bytes());
    }
    cubin::write(&cubin).map(Cow::Owned).map_err(|error| error.to_string())
}
