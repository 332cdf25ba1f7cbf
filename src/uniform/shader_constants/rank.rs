//! Chooses among candidates: the highest scores that fit the room of their bank.
//!
//! A value whose program has a word already takes no room. In the first position candidates of one
//! score go in together or not at all; what has no room is pending. In the second one it is first
//! come, first served among equals, with what was pending first.

use super::candidates::Candidate;
use super::classes::BankClass;
use crate::ori::ShaderConstants;
use crate::tables::patches::{PatchedWord, Program};
use std::cmp::Reverse;

/// A candidate and the offset of its first word in the map.
pub type Chosen = (Candidate, u32);

/// Places candidates in the map.
pub fn choose(mut found: Vec<Candidate>, map: &mut ShaderConstants, is_last: bool) -> Vec<Chosen> {
    found.retain(|candidate| candidate.class.bank() == BankClass::Compiler);
    let waited = |candidate: &Candidate| candidate.programs.iter().all(|program| map.pending.contains(program));
    crate::sorted::by_cached_key(&mut found, |candidate| (Reverse(candidate.score), is_last && !waited(candidate)));
    if is_last {
        map.pending.clear();
    }
    let mut chosen = Vec::new();
    let mut rest = found.as_slice();
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|other| other.score == first.score).count();
        let count = if is_last { 1 } else { same };
        let (group, behind) = rest.split_at(count);
        rest = behind;
        let before = map.words.len();
        let places: Vec<Option<u32>> = group.iter().map(|candidate| place(map, candidate)).collect();
        if places.iter().all(Option::is_some) {
            chosen.extend(group.iter().cloned().zip(places.into_iter().flatten()));
            continue;
        }
        map.words.truncate(before);
        if !is_last {
            let programs = group.iter().flat_map(|candidate| &candidate.programs);
            programs.for_each(|program| {
                if !map.pending.contains(program) {
                    map.pending.push(program.clone());
                }
            });
        }
    }
    chosen
}

/// The offset of a candidate: where its words are already, or behind the last one; `None` if there
/// is no room. A pair is aligned to its size.
fn place(map: &mut ShaderConstants, candidate: &Candidate) -> Option<u32> {
    let bytes = candidate.bytes();
    let has =
        |offset: u32, program: &Program| map.words.iter().any(|word| word.offset == offset && word.program == *program);
    let all = |offset: u32| candidate.programs.iter().zip((offset..).step_by(4)).all(|(program, at)| has(at, program));
    let aligned = |offset: u32| (map.start + offset).is_multiple_of(bytes);
    let known = map.words.iter().map(|word| word.offset).find(|offset| aligned(*offset) && all(*offset));
    if known.is_some() {
        return known;
    }
    let offset = (map.start + map.end()).next_multiple_of(bytes) - map.start;
    if offset + bytes > map.capacity {
        return None;
    }
    let words = candidate.programs.iter().zip((offset..).step_by(4));
    map.words.extend(words.map(|(program, offset)| PatchedWord { offset, program: program.clone() }));
    Some(offset)
}
