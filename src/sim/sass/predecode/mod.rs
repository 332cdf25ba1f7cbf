//! Translates decoded instructions to the executable form, [`Code`], once for each launch.
//!
//! The meaning depends on opcode, operand roles and modifier words only, never on a generation. An
//! opcode or modifier that is known to be unimplemented gives a reason instead of an instruction.

mod arith;
mod control;
mod float;
mod matrix;
mod memory;
mod operands;
mod tensor_memory;
#[cfg(test)]
mod tests;
mod texture;

use super::code::{Code, Exec};
use super::setup::Banks;
use super::words::Words;
use crate::sass::Inst;

pub use operands::Builder;

/// A decoded instruction with the information that the simulator needs.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The instruction.
    pub inst: Inst,
    /// Its modifiers as printed words.
    pub words: Words,
    /// Name of the special register that it reads; empty if it reads none.
    pub special: String,
}

/// Translates the instruction at a byte offset.
///
/// # Errors
///
/// An opcode, modifier or operand that the simulator does not implement.
pub fn predecode(banks: &Banks, offset: u64, lifted: &Lifted) -> Result<Code, String> {
    let mut b = Builder::new(banks, offset, lifted)?;
    for family in [arith::build, float::build, memory::build, matrix::build, tensor_memory::build, control::build] {
        if let Some(exec) = family(&mut b)? {
            b.code.exec = exec;
            return Ok(b.code);
        }
    }
    Err(format!("the simulator does not execute {}", lifted.inst.op.info().text))
}

/// Translates a whole function. An instruction that cannot be executed becomes an [`Exec::Refuse`],
/// which faults when it is reached; the second result has the reasons.
pub fn predecode_all(banks: &Banks, code: &[Result<Lifted, String>]) -> (Vec<Code>, Vec<String>) {
    let mut reasons = Vec::new();
    let codes = code.iter().enumerate().map(|(i, lifted)| {
        let made = match lifted {
            Ok(lifted) => predecode(banks, i as u64 * 16, lifted),
            Err(reason) => Err(reason.clone()),
        };
        made.unwrap_or_else(|reason| {
            reasons.push(reason);
            Code::new(Exec::Refuse(reasons.len() as u32 - 1))
        })
    });
    (codes.collect(), reasons)
}
