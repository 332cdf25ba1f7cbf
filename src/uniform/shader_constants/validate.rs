//! The validator, under two knobs: the function is whole, and code and map agree.

use crate::ori::{Convention, Function, Kind, ShaderConstants, verify};
use crate::tables::{Mod, value};

/// The published number of the operation that a function begins with if it is not looked at.
const UNCHECKED: u16 = 188;

/// Runs the validator.
///
/// # Errors
///
/// All that does not fit together.
pub fn run(function: &Function) -> Result<(), String> {
    let first = function[function.entry()].first();
    if first.is_none_or(|inst| function[*inst].op as u16 == UNCHECKED) {
        return Ok(());
    }
    let mut errors = verify::verify(function);
    let Some(map) = &function.attributes().shader_constants else { return Ok(()) };
    if function.attributes().convention != Convention::Kernel {
        errors.push("a function that is no kernel has shader constants".to_string());
    }
    for word in &map.words {
        if word.offset + 4 > map.capacity {
            errors.push(format!("the word at {} is outside of the bank's room", word.offset));
        }
        if let Err(error) = word.program.check(map.param_bytes) {
            errors.push(format!("the word at {}: {error}", word.offset));
        }
    }
    if !map.words.windows(2).all(|pair| pair[0].offset + 4 <= pair[1].offset) {
        errors.push("words overlap".to_string());
    }
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        let wide = function[*inst].mods.get(Mod::Size) == value::size::_64;
        for operand in function.args(*inst) {
            let Kind::Const { bank: ShaderConstants::BANK, offset } = operand.kind() else { continue };
            let inside = u32::from(offset).checked_sub(map.start).filter(|offset| *offset < map.capacity);
            let Some(offset) = inside else { continue };
            let has = |at: u32| map.words.iter().any(|word| word.offset == at);
            if !has(offset) || wide && !has(offset + 4) {
                errors.push(format!("{inst} reads the word at {offset}, which nobody patches"));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(format!("shader constants do not fit the code: {}", errors.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    #[test]
    fn a_word_that_nobody_patches_and_a_bad_program_are_found_out() {
        let check = |map: &str| {
            let body = "b0:\n  LDC d=r0 c=c[2][0x4]\n  STG{e=E} a={r1,r2} b=r0\n  EXIT\n";
            run(&text::parse(&format!("function k sm_80 patched={map}\n{body}")).unwrap())
        };
        assert_eq!(check("0:8:12,4=param:8"), Ok(()));
        let error = |map: &str| check(map).unwrap_err();
        assert!(error("0:8:12,0=param:8").ends_with("reads the word at 4, which nobody patches"));
        assert!(error("0:8:8,4=param:8").contains("the word at 4: no word of 8 bytes of parameters is at 8"));
        assert!(error("0:4:12,4=param:8").contains("the word at 4 is outside of the bank's room"));
        assert!(error("0:8:12,4=param:8,4=param:4").contains("words overlap"));
    }
}
