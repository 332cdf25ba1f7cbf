//! Decoded instructions made ready for execution.
//!
//! Input: an instruction, the words of its modifiers, the constant banks of the launch. Output: [`Code`], or the reason
//! why the machine cannot execute it. Invariant: meaning depends on opcode, roles and words only, never on a generation;
//! an unknown word is a reason, not a guess.

mod arith;
mod control;
mod float;
mod matrix;
mod memory;
mod operands;
#[cfg(test)]
mod tests;

use super::code::{Code, Exec};
use super::setup::Banks;
use super::words::Words;
use crate::sass::Inst;

pub use operands::Builder;

/// One instruction as the machine wants to know it.
#[derive(Clone, Debug)]
pub struct Lifted {
    pub inst: Inst,
    pub words: Words,
    /// Name of the special register that it reads, empty where it reads none.
    pub special: String,
}

/// Makes an instruction at a byte offset executable.
pub fn predecode(banks: &Banks, offset: u64, lifted: &Lifted) -> Result<Code, String> {
    let mut b = Builder::new(banks, offset, lifted)?;
    for family in [arith::build, float::build, memory::build, matrix::build, control::build] {
        if let Some(exec) = family(&mut b)? {
            b.code.exec = exec;
            return Ok(b.code);
        }
    }
    Err(format!("the machine does not execute {}", lifted.inst.op.info().text))
}

/// The same for a whole function: what cannot be executed becomes an instruction that says so when it is reached.
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
