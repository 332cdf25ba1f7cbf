//! The end of the second position: drops words that nothing reads, packs the others, and closes the
//! map.

use crate::ori::{Function, Kind, Operand, ShaderConstants};
use crate::sorted::SortedMap;
use crate::tables::patches::PatchedWord;
use crate::tables::{Mod, value};

/// Bytes to which the compiler's own constants behind the map are aligned.
const ALIGN: u32 = 8;

/// Drops words that nothing reads and moves the others to the front, pairs as pairs.
pub fn pack(function: &mut Function, map: &mut ShaderConstants) {
    // Bytes that are read at each offset.
    let mut read: SortedMap<u32, u32> = SortedMap::new();
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        let wide = function[*inst].mods.get(Mod::Size) == value::size::_64;
        for offset in function.args(*inst).iter().filter_map(|operand| place(map, *operand)) {
            let bytes = read.entry(offset).or_default();
            *bytes = (*bytes).max(if wide { 8 } else { 4 });
        }
    }
    let (mut moved, mut words, mut end) = (SortedMap::new(), Vec::new(), 0u32);
    for (offset, bytes) in read {
        // The second word of a pair that is read alone, too, moves with it.
        if moved.contains_key(&offset) {
            continue;
        }
        let to = (map.start + end).next_multiple_of(bytes) - map.start;
        for (from, to) in [(offset, to), (offset + 4, to + 4)].into_iter().take(bytes as usize / 4) {
            moved.insert(from, to);
            let word = map.words.iter().find(|word| word.offset == from).cloned();
            words.extend(word.map(|word| PatchedWord { offset: to, ..word }));
            end = to + 4;
        }
    }
    for inst in function.layout().iter().flat_map(|block| &function[*block]).copied().collect::<Vec<_>>() {
        for i in 0..function.args(inst).len() {
            let old = function.args(inst)[i];
            let Some(to) = place(map, old).and_then(|from| moved.get(&from)) else { continue };
            let Ok(offset) = u16::try_from(map.start + to) else { continue };
            let new = Operand::constant(ShaderConstants::BANK, offset).modified_like(old);
            if new != old {
                function.args_mut(inst)[i] = new;
            }
        }
    }
    map.words = words;
}

/// The offset in the map that an operand reads.
fn place(map: &ShaderConstants, operand: Operand) -> Option<u32> {
    let Kind::Const { bank: ShaderConstants::BANK, offset } = operand.kind() else { return None };
    u32::from(offset).checked_sub(map.start).filter(|offset| *offset < map.capacity)
}

/// Closes the map. The compiler's own constants, of which there are none yet, stand behind it.
pub fn close(function: &mut Function, map: &mut ShaderConstants) {
    let end = map.end().next_multiple_of(ALIGN);
    if let Some(constants) = function.attributes_mut().constants.as_mut().filter(|own| own.values.is_empty()) {
        constants.start = map.start.next_multiple_of(ALIGN) + end;
    }
    (map.capacity, map.finalised) = (map.end(), true);
}
