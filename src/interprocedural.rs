//! Interprocedural register allocation: private functions, whose callers know what they change.
//!
//! A function of a whole program is private if it is only called by name, calls no function but
//! private ones and the driver's, and stands on top of few of them ([`DEEPEST`]). It saves no
//! registers, and takes its return address in one word. It is compiled before its callers, which
//! keep their values in the registers that it leaves alone. All other functions follow the calling
//! convention; where one of them calls a private function, it saves what that changes.

use crate::analysis::def_use::rewrite;
use crate::arrays::Each;
use crate::legal::RETURN_ADDRESS;
use crate::lower::{self, LoweredFunction, LoweredModule};
use crate::ori::{Block, File, Function, InstId, Operand, STACK_POINTER, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::registers::{Callee, Changes};
use crate::tables::{Op, Role};
use crate::threads::map_in_order;

/// Calls of private functions below one another. Each keeps a return address at least in registers
/// that those below leave alone.
const DEEPEST: usize = 8;

/// Makes functions private, and their callers call them as such.
pub fn prepare(lowered: &mut LoweredModule) {
    let levels = levels(lowered);
    for device in lowered.devices.iter_mut().map(|device| &mut device.function) {
        if levels.contains_key(device.name()) {
            device.attributes_mut().private = true;
            move_return_address(device);
        }
    }
    for function in lowered.functions.iter_mut().chain(&mut lowered.devices) {
        let names: Vec<&String> = function.callees.iter().filter(|name| levels.contains_key(*name)).collect();
        function.function.attributes_mut().private_callees =
            names.into_iter().map(|name| (name.clone(), Changes::ALL)).collect();
        if !function.function.attributes().private_callees.is_empty() {
            move_return_addresses_of_calls(&mut function.function);
        }
    }
}

/// For each private function the longest chain of calls below it.
fn levels(lowered: &LoweredModule) -> SortedMap<String, usize> {
    // One name may stand for several functions, each for one kernel.
    let mut callees: SortedMap<&str, SortedSet<&str>> = SortedMap::new();
    let mut bound: SortedSet<&str> = lowered.pointers.iter().map(String::as_str).collect();
    for device in &lowered.devices {
        let (name, names) = (device.function.name(), device.callees.iter().map(String::as_str));
        callees.entry(name).or_default().extend(names);
        if device.indirect {
            bound.insert(name);
        }
    }
    let mut callers: SortedMap<&str, Vec<&str>> = SortedMap::new();
    for (name, names) in &callees {
        names.iter().for_each(|callee| callers.entry(callee).or_default().push(name));
    }
    let mut left: SortedMap<&str, usize> = callees.iter().map(|(name, names)| (*name, names.len())).collect();
    let mut ready: Vec<&str> = callees.keys().copied().filter(|name| left[name] == 0).collect();
    let mut levels = SortedMap::new();
    let mut level = 0;
    while !ready.is_empty() && level < DEEPEST {
        let mut next = Vec::new();
        for name in ready.into_iter().filter(|name| !bound.contains(name)) {
            levels.insert(name.to_string(), level);
            for caller in callers.get(name).into_iter().flatten() {
                if let Some(count) = left.get_mut(caller) {
                    *count -= 1;
                    next.extend((*count == 0).then_some(*caller));
                }
            }
        }
        (ready, level) = (next, level + 1);
    }
    levels
}

/// Compiles all functions, entries first in the results, with private ones before their callers.
/// `compile` leaves the function in physical registers.
pub fn compile<R: Send>(
    lowered: &mut LoweredModule,
    threads: usize,
    compile: impl Fn(&mut LoweredFunction) -> (R, Changes) + Sync,
) -> Vec<R> {
    let levels = levels(lowered);
    let last = levels.values().max().map_or(0, |most| most + 1);
    let mut groups: Vec<Vec<(usize, &mut LoweredFunction)>> = (0..=last).map(|_| Vec::new()).collect();
    for (place, function) in lowered.functions.iter_mut().chain(&mut lowered.devices).enumerate() {
        let private = function.function.attributes().private;
        let level = levels.get(function.function.name()).copied().filter(|_| private);
        groups[level.unwrap_or(last)].push((place, function));
    }
    let mut known: SortedMap<String, Changes> = SortedMap::new();
    let mut results = Vec::new();
    for mut group in groups {
        let made = map_in_order(&mut group, threads, |(_, function)| {
            for (name, changes) in &mut function.function.attributes_mut().private_callees {
                *changes = known.get(name).copied().unwrap_or(Changes::ALL);
            }
            compile(function)
        });
        for ((place, function), (result, changes)) in group.iter().zip(made) {
            if function.function.attributes().private {
                known.entry(function.function.name().to_string()).or_default().join(changes);
            }
            results.push((*place, result));
        }
    }
    crate::sorted::by_key(&mut results, |(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What an allocated function changes, with the functions that it calls.
pub fn changes(function: &Function) -> Changes {
    let (mut changes, mut callees) = (Changes::default(), SortedSet::new());
    for inst in function.layout().iter().flat_map(|block| &function[*block]) {
        function.for_each_def(*inst, |reg| {
            let data = &function[reg];
            if let Some(number) = data.phys.filter(|n| data.file != File::R || *n != STACK_POINTER) {
                changes.add(data.file.name(), number);
            }
        });
        callees.extend(function.callee(*inst));
    }
    callees.into_iter().for_each(|callee| changes.join(Changes::of(callee)));
    changes
}

/// Lets a device function take its return address as slow paths do: its low word, in the first of
/// [`RETURN_ADDRESS`].
pub fn move_return_address(function: &mut Function) {
    let entry = function.entry();
    let at = function[entry].iter().position(|inst| function[*inst].op == Op::ENTRY);
    let Some(at) = at else { return };
    let mut defs = function.extras(function[entry][at]).1.to_vec();
    let fixed = |function: &Function, operand: &Operand| operand.as_reg().and_then(|reg| function[reg].fixed);
    let [low, high] = lower::RETURN_ADDRESS;
    if let Some(reg) = defs.iter().find(|d| fixed(function, d) == Some(low)).and_then(|d| d.as_reg()) {
        function[reg].fixed = Some(RETURN_ADDRESS[0]);
    }
    let Some(place) = defs.iter().position(|operand| fixed(function, operand) == Some(high)) else { return };
    let high = defs.remove(place);
    let start = function.make(Op::ENTRY);
    function.set_extras(start, &[], &defs);
    function[entry][at] = start;
    // The caller passes the low word only; the other one is made where it is read.
    zero_copies(function, entry, |function, inst| function.arg(inst, Role::A) == high);
    for block in function.layout().to_vec() {
        let last = function[block].last().copied();
        let Some(ret) = last.filter(|inst| function[*inst].op == Op::RET) else { continue };
        let Some(pair) = function.arg(ret, Role::A).as_vector() else { continue };
        let regs: Vec<VReg> = function.vector_regs(pair).to_vec();
        regs.iter().zip(RETURN_ADDRESS).for_each(|(reg, own)| function[*reg].fixed = Some(own));
        zero_copies(function, block, |function, inst| function.arg(inst, Role::D).as_reg() == regs.last().copied());
    }
}

/// Turns copies into moves of zero.
fn zero_copies(function: &mut Function, block: Block, is_zero: impl Fn(&Function, InstId) -> bool) {
    for inst in function[block].clone() {
        if function[inst].op == Op::COPY && is_zero(function, inst) {
            let d = function.arg(inst, Role::D);
            rewrite(function, inst, Op::MOV, &[(Role::D, d), (Role::A, Operand::zero())]);
        }
    }
}

/// The same for the calls of private functions.
fn move_return_addresses_of_calls(function: &mut Function) {
    for block in function.layout().to_vec() {
        let mut gone = SortedSet::new();
        for at in 0..function[block].len() {
            let call = function[block][at];
            if matches!(function.callee(call), Some(Callee::Private(_))) {
                gone.extend(move_return_address_of_call(function, block, at));
            }
        }
        function[block].retain(|inst| !gone.contains(inst));
    }
}

/// Leaves the high word of a call's return address out; returns what makes it.
fn move_return_address_of_call(function: &mut Function, block: Block, at: usize) -> Option<InstId> {
    let call = function[block][at];
    let (uses, defs) = function.extras(call);
    let (mut uses, defs) = (uses.to_vec(), defs.to_vec());
    let [low, high] = lower::RETURN_ADDRESS.each(|number| {
        let fixed = |operand: &Operand| operand.as_reg().and_then(|reg| function[reg].fixed) == Some(number);
        uses.iter().copied().find(fixed)
    });
    let (low, high) = (low?.as_reg()?, high?);
    function[low].fixed = Some(RETURN_ADDRESS[0]);
    uses.retain(|operand| *operand != high);
    let new = function.make(Op::CALL);
    for role in function[call].op.info().roles {
        let operand = function.arg(call, role.role);
        function.set_arg(new, role.role, operand);
    }
    let old = function[call];
    (function[new].mods, function[new].guard, function[new].line) = (old.mods, old.guard, old.line);
    function.set_extras(new, &uses, &defs);
    function[block][at] = new;
    let makes = |inst: &InstId| function[*inst].op == Op::MOV && function.arg(*inst, Role::D) == high;
    function[block][..at].iter().rfind(|inst| makes(inst)).copied()
}
