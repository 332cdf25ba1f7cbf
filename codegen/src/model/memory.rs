//! How PTX becomes SASS where a row can say it: memory order, cache control, atomics, special registers.
//!
//! Input: rows of `lowering/*.ron`. Output: the rows, and readers of their small columns, which resolve names of modifiers and
//! opcodes. Nothing else is resolved here.

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
    pub fn load(sources: &mut Sources, report: &mut Report) -> Memory {
        Memory {
            order: sources.rows("lowering/order.ron", report),
            cache: sources.rows("lowering/cache.ron", report),
            atomic: sources.rows("lowering/atomic.ron", report),
            special: sources.rows("lowering/special.ron", report),
        }
    }
}

/// Kind and value of a `KIND=VALUE` word, as positions; `None` where one has no such name.
pub fn modifier(ori: &Ori, word: &str) -> Option<(usize, usize)> {
    let (kind, value) = word.split_once('=')?;
    let kind = ori.kinds.iter().position(|k| k.name == kind)?;
    Some((kind, ori.kinds[kind].values.iter().position(|v| v == value)?))
}

/// Opcode and modifiers of an `OP:KIND=VALUE:…` word, as positions.
pub fn instruction(ori: &Ori, word: &str) -> Option<(usize, Vec<(usize, usize)>)> {
    let mut parts = word.split(':');
    let op = ori.op(parts.next()?)?;
    Some((op, parts.map(|part| modifier(ori, part)).collect::<Option<Vec<_>>>()?))
}

/// The words of a column, or the one word that stands for nothing.
pub fn words(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { vec![""] } else { words }
}
