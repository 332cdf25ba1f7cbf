//! The functions that expansions call for operands that their short paths reject: `legal/slow_path`
//! has the calls.
//!
//! Such a function does the one operation of its helper, expanded in full. It uses only the
//! registers that `tables/registers.ron` leaves to slow paths, has no frame, and returns its lanes
//! together.

use super::compiled::{Settings, head};
use crate::alloc::EXTRA_REGISTERS;
use crate::interprocedural;
use crate::ori::{Convention, Function};
use crate::tables::helpers::Helper;
use crate::tables::registers::Callee;

/// What the code depends on: the target alone. It is in the section of its caller, also in objects.
pub fn settings(settings: Settings) -> Settings {
    Settings { object: false, optimise: true, max_registers: None, slow_path: true, ..settings }
}

/// A PTX text that defines the function.
pub fn source(helper: &Helper, target: &str) -> String {
    let op = helper.op.split(',').next().unwrap_or_default();
    let names: Vec<String> = helper.returns.iter().chain(helper.params).flat_map(|slot| slot.registers()).collect();
    let head_of_function = helper.head.replacen(helper.name, &helper.slow_path_name(), 1);
    format!("{}.weak {head_of_function}\n{{\n    {op} {};\n    ret;\n}}\n", head(target), names.join(", "))
}

/// Gives a lowered device function the convention of slow paths.
pub fn prepare(function: &mut Function, helper: &Helper) {
    function.attributes_mut().convention = Convention::SlowPath;
    function.attributes_mut().max_registers = Some(u32::from(helper.family().slow_path) + EXTRA_REGISTERS);
    interprocedural::move_return_address(function);
}

/// Checks that a finished function leaves to its callers what it must.
///
/// # Errors
///
/// A frame, or a register that it should preserve.
pub fn check(function: &Function, helper: &Helper) -> Result<(), String> {
    if function.attributes().frame_bytes != 0 {
        return Err("a slow path has no frame".to_string());
    }
    let (callee, mut wrong) = (Callee::SlowPath(helper.family().slow_path), None);
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        function.for_each_def(*inst, |reg| {
            let data = &function[reg];
            let kept = |number: &u16| callee.keeps(data.file.name()).any(|run| run.contains(number));
            wrong = wrong.or(data.phys.filter(kept).map(|number| (data.file, number)));
        });
    }
    wrong.map_or(Ok(()), |(file, number)| Err(format!("a slow path keeps {}{number}", file.name())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper::compiled;
    use crate::tables::helpers::HELPERS;
    use crate::tables::targets::TARGETS;

    #[test]
    fn every_slow_path_has_enough_registers_on_every_target() {
        let slow: Vec<&Helper> = HELPERS.iter().filter(|helper| helper.family().slow_path > 0).collect();
        assert!(slow.len() > 40, "{}", slow.len());
        for target in TARGETS.iter().filter(|target| target.info().is_some()) {
            let general = Settings {
                target: target.name,
                object: false,
                optimise: true,
                max_registers: None,
                verify: true,
                slow_path: false,
            };
            for helper in &slow {
                if let Err(message) = compiled(helper, settings(general)) {
                    panic!("{}: {message}", helper.name);
                }
            }
        }
    }
}
