//! Weak helper functions behind the code that calls them.
//!
//! Input: lowered functions and their code. Output: the same with every helper that some code calls, and those that these call. Invariant:
//! each helper stands once among the devices; order follows the first call.

use super::compiled::{Settings, compiled};
use super::require;
use crate::lower::LoweredModule;
use crate::pipeline::emit::{Code, Place};
use crate::tables::elf::RelocRole;
use std::collections::{BTreeMap, HashSet};

/// Adds the helpers that the code of a module calls: to the devices with their code, and to the entries that reach them.
pub fn add(
    lowered: &mut LoweredModule,
    codes: &[Code],
    devices: &mut Vec<Code>,
    settings: Settings,
) -> Result<(), String> {
    let limits = lowered.functions.iter().filter_map(|f| f.function.max_registers);
    let settings = Settings { max_registers: limits.min(), ..settings };
    let own = lowered.functions.iter().chain(&lowered.devices).map(|f| f.function.name.clone()).collect();
    let mut adding = Adding { places: BTreeMap::new(), own, settings };
    for (entry, code) in codes.iter().enumerate() {
        for name in called(code) {
            if let Some(place) = adding.place(&name, lowered, devices)? {
                lowered.functions[entry].callees.push(name);
                adding.behind(entry, place, lowered);
            }
        }
    }
    // What devices call stands behind every entry that has the device; what helpers call among them.
    let mut device = 0;
    while device < lowered.devices.len() {
        for name in called(&devices[device]) {
            let Some(place) = adding.place(&name, lowered, devices)? else { continue };
            lowered.devices[device].callees.push(name);
            for entry in 0..lowered.functions.len() {
                if lowered.functions[entry].pieces.contains(&device) {
                    adding.behind(entry, place, lowered);
                }
            }
        }
        device += 1;
    }
    Ok(())
}

struct Adding {
    /// Places among the devices of what was added.
    places: BTreeMap<String, usize>,
    /// Names of the functions of the module itself.
    own: HashSet<String>,
    settings: Settings,
}

impl Adding {
    /// Where the helper of a name stands among the devices; none for a function of the module itself or of elsewhere.
    fn place(
        &mut self,
        name: &str,
        lowered: &mut LoweredModule,
        devices: &mut Vec<Code>,
    ) -> Result<Option<usize>, String> {
        if let Some(place) = self.places.get(name) {
            return Ok(Some(*place));
        }
        if self.own.contains(name) || crate::tables::helpers::Helper::by_name(name).is_none() {
            return Ok(None);
        }
        let made = compiled(require(name)?, self.settings)?;
        let place = lowered.devices.len();
        lowered.devices.push(made.lowered.clone());
        devices.push(made.code.clone());
        if self.settings.object {
            let known = &mut lowered.object.prototypes;
            let new: Vec<_> = made.object.prototypes.iter().filter(|p| !known.contains(p)).cloned().collect();
            known.extend(new);
        }
        self.own.insert(made.lowered.function.name.clone());
        self.places.insert(name.to_string(), place);
        Ok(Some(place))
    }

    /// Puts a device behind an entry, once. In an object every function stands for itself.
    fn behind(&self, entry: usize, place: usize, lowered: &mut LoweredModule) {
        let pieces = &mut lowered.functions[entry].pieces;
        if !self.settings.object && !pieces.contains(&place) {
            pieces.push(place);
        }
    }
}

/// Functions that a code calls by name, once each.
fn called(code: &Code) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for fixup in &code.fixups {
        let name = match &fixup.place {
            Place::Function(name) | Place::Linked { role: RelocRole::Call, name, .. } => name,
            _ => continue,
        };
        if known.insert(name) {
            names.push(name.clone());
        }
    }
    names
}
