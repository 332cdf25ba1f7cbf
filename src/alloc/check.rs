//! Checks an allocation without trusting how it was made.
//!
//! Input: an allocated function before its copies are dropped. Output: what is wrong. For each
//! instruction, in program order along every path: each use reads the register whose value was last written to that
//! physical register. The state is, for each physical register, the one virtual register whose value it holds; where paths
//! join and disagree it holds nothing that may be read. A copy makes its destination hold the source's value under both names.

use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, VReg};
use crate::tables::{Op, Role};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet};

/// For each physical register the virtual registers whose current value it holds.
type State = BTreeMap<(File, u16), BTreeSet<VReg>>;

pub fn check(function: &Function) -> Vec<String> {
    let cfg = Cfg::new(function);
    let mut entry: SecondaryMap<Block, Option<State>> = SecondaryMap::new();
    let mut errors = Vec::new();
    let mut work = vec![function.entry()];
    let given = function.stack_pointer.and_then(|r| Some(((File::R, function.regs[r].phys?), BTreeSet::from([r]))));
    entry[function.entry()] = Some(given.into_iter().collect());
    while let Some(block) = work.pop() {
        let mut state = entry[block].clone().unwrap_or_default();
        for inst in &function.blocks[block] {
            step(function, *inst, &mut state, None);
        }
        for succ in &cfg.succs[block] {
            let joined = match &entry[*succ] {
                None => state.clone(),
                Some(old) => join(old, &state),
            };
            if entry[*succ].as_ref() != Some(&joined) {
                entry[*succ] = Some(joined);
                work.push(*succ);
            }
        }
    }
    for block in &cfg.rpo {
        let mut state = entry[*block].clone().unwrap_or_default();
        for inst in &function.blocks[*block] {
            step(function, *inst, &mut state, Some(&mut errors));
        }
    }
    errors
}

fn join(a: &State, b: &State) -> State {
    a.iter()
        .filter_map(|(place, held)| {
            let both: BTreeSet<VReg> = b.get(place)?.intersection(held).copied().collect();
            (!both.is_empty()).then_some((*place, both))
        })
        .collect()
}

fn step(function: &Function, inst: InstId, state: &mut State, errors: Option<&mut Vec<String>>) {
    let place = |reg: VReg| function.regs[reg].phys.map(|p| (function.regs[reg].file, p));
    if let Some(errors) = errors {
        function.for_each_use(inst, |reg| {
            let holds = place(reg).and_then(|p| state.get(&p)).is_some_and(|held| held.contains(&reg));
            if !holds && !function.regs[reg].file.eq(&File::B) {
                let text = crate::ori::text::instruction(function, inst);
                errors.push(format!("{inst} {text}: {reg} is not where it is read from"));
            }
        });
    }
    let data = &function.insts[inst];
    let copied = (data.op == Op::COPY).then(|| function.arg(inst, Role::A).as_reg()).flatten();
    let same = copied.and_then(place).and_then(|p| state.get(&p).cloned());
    let mut written = Vec::new();
    function.for_each_def(inst, |reg| written.push(reg));
    for reg in written {
        let Some(at) = place(reg) else { continue };
        // The value of this virtual register elsewhere is an old one now.
        for held in state.values_mut() {
            held.remove(&reg);
        }
        let mut held = BTreeSet::from([reg]);
        if let Some(same) = &same
            && data.guard.is_null()
        {
            held.extend(same.iter().copied());
        }
        state.insert(at, held);
    }
}
