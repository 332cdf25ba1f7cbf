//! The tables of memory order, cache control, atomics and special registers.
//!
//! The rows are those of `lowering/*.ron`. The parsers of their columns resolve the names of
//! modifiers and opcodes; nothing else is resolved here.

use super::ori::Ori;
use crate::report::Report;
use crate::rows::memory::*;
use crate::source::{Row, Sources};

/// Tables of memory order, cache control, atomics and special registers.
pub struct Memory {
    pub order: Vec<Row<OrderRow>>,
    pub cache: Vec<Row<CacheRow>>,
    pub atomic: Vec<Row<AtomicRow>>,
    pub special: Vec<Row<SpecialHomeRow>>,
}

impl Memory {
    /// Reads the rows; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Memory {
        Memory {
            order: sources.rows("lowering/order.ron", report),
            cache: sources.rows("lowering/cache.ron", report),
            atomic: sources.rows("lowering/atomic.ron", report),
            special: sources.rows("lowering/special.ron", report),
        }
    }
}

/// Kind and value of a `KIND=VALUE` word, as indices; `None` if a name does not exist.
pub fn modifier(ori: &Ori, word: &str) -> Option<(usize, usize)> {
    let (kind, value) = word.split_once('=')?;
    let kind = ori.kinds.iter().position(|k| k.name == kind)?;
    Some((kind, ori.kinds[kind].values.iter().position(|v| v == value)?))
}

/// Opcode and modifiers of an `OP:KIND=VALUE:…` word, as indices.
pub fn instruction(ori: &Ori, word: &str) -> Option<(usize, Vec<(usize, usize)>)> {
    let mut parts = word.split(':');
    let op = ori.op(parts.next()?)?;
    Some((op, parts.map(|part| modifier(ori, part)).collect::<Option<Vec<_>>>()?))
}

/// The words of a column; an empty column has one empty word.
pub fn words(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { vec![""] } else { words }
}
