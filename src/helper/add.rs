//! Adds weak helper functions to the code that calls them, including helpers that helpers call.
//!
//! Each helper occurs once among the device functions, in the order of first calls.

use super::compiled::{Compiled, Settings, compiled};
use super::{require, slow_path};
use crate::lower::LoweredModule;
use crate::pipeline::emit::{Code, Place};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::elf::RelocRole;
use crate::tables::helpers::Helper;
use std::sync::Arc;

/// Adds the helpers that the code of a module calls to the device functions, and to the entries
/// that reach them.
///
/// # Errors
///
/// A helper that cannot be compiled.
pub fn add(
    lowered: &mut LoweredModule,
    codes: &[Code],
    devices: &mut Vec<Code>,
    settings: Settings,
) -> Result<(), String> {
    let limits = lowered.functions.iter().filter_map(|f| crate::ori::register_changes::least(&f.function));
    let settings = Settings { max_registers: limits.min(), ..settings };
    let own = lowered.functions.iter().chain(&lowered.devices).map(|f| f.function.name().to_string()).collect();
    let mut adding = Adding { places: SortedMap::new(), own, settings };
    for (entry, code) in codes.iter().enumerate() {
        for name in called(code) {
            if let Some(place) = adding.place(&name, lowered, devices)? {
                lowered.functions[entry].callees.push(name);
                adding.behind(entry, place, lowered);
            }
        }
    }
    // Every entry with a device function also gets the helpers that this function calls, and
    // theirs.
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
    /// Indices, among the device functions, of added helpers.
    places: SortedMap<String, usize>,
    /// Names of the functions of the module itself.
    own: SortedSet<String>,
    settings: Settings,
}

impl Adding {
    /// Index of a helper among the device functions, added on first use; `None` for a function of
    /// the module or an external one.
    fn place(
        &mut self,
        name: &str,
        lowered: &mut LoweredModule,
        devices: &mut Vec<Code>,
    ) -> Result<Option<usize>, String> {
        if let Some(place) = self.places.get(name) {
            return Ok(Some(*place));
        }
        let slow = Helper::of_slow_path(name);
        // In an object each section has those of its own.
        if slow.is_some() && self.settings.object {
            return Ok(None);
        }
        if slow.is_none() && (self.own.contains(name) || Helper::by_name(name).is_none()) {
            return Ok(None);
        }
        let made = match slow {
            Some(helper) => compiled(helper, slow_path::settings(self.settings))?,
            None => compiled(require(name)?, self.settings)?,
        };
        let place = lowered.devices.len();
        lowered.devices.push(made.lowered.clone());
        devices.push(made.code.clone());
        if self.settings.object {
            let known = &mut lowered.object.prototypes;
            let new: Vec<_> = made.object.prototypes.iter().filter(|p| !known.contains(p)).cloned().collect();
            known.extend(new);
        }
        self.own.insert(made.lowered.function.name().to_string());
        self.places.insert(name.to_string(), place);
        Ok(Some(place))
    }

    /// Places a device function behind an entry, once. In an object each function has its own
    /// section instead.
    fn behind(&self, entry: usize, place: usize, lowered: &mut LoweredModule) {
        let pieces = &mut lowered.functions[entry].pieces;
        if !self.settings.object && !pieces.contains(&place) {
            pieces.push(place);
        }
    }
}

/// The slow paths that a piece of code calls, once each, in the order of first calls.
///
/// # Errors
///
/// One that cannot be compiled.
pub fn slow_paths(code: &Code, settings: Settings) -> Result<Vec<Arc<Compiled>>, String> {
    let all = called(code).into_iter().filter_map(|name| Helper::of_slow_path(&name));
    all.map(|helper| compiled(helper, slow_path::settings(settings))).collect()
}

/// Functions that a piece of code calls by name, once each.
fn called(code: &Code) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known = SortedSet::new();
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
