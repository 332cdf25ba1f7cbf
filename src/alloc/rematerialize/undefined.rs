//! Moves values that nothing defines to the block that reads them, so that they hold no register
//! on the way.

use crate::ori::{Block, File, Function, InstId, VReg};
use crate::tables::Op;
use cranelift_entity::SecondaryMap;

/// Where a register is read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Readers {
    #[default]
    None,
    In(Block),
    Many,
}

/// Moves each UNDEF before its first reader if one block has all its readers.
pub fn run(function: &mut Function) {
    let mut undefined: SecondaryMap<VReg, Option<InstId>> = SecondaryMap::new();
    let mut definitions: SecondaryMap<VReg, u32> = SecondaryMap::new();
    let mut readers: SecondaryMap<VReg, Readers> = SecondaryMap::new();
    let mut any = false;
    for block in function.layout() {
        for inst in &function[*block] {
            function.for_each_def(*inst, |reg| {
                definitions[reg] += 1;
                // A uniform register is only written where all lanes are together.
                let general = matches!(function[reg].file, File::R | File::P);
                if function[*inst].op == Op::UNDEF && general {
                    undefined[reg] = Some(*inst);
                    any = true;
                }
            });
            function.for_each_use(*inst, |reg| {
                readers[reg] = match readers[reg] {
                    Readers::None => Readers::In(*block),
                    Readers::In(other) if other == *block => Readers::In(other),
                    _ => Readers::Many,
                };
            });
        }
    }
    if !any {
        return;
    }
    let moves = |reg: VReg| undefined[reg].filter(|_| definitions[reg] == 1 && matches!(readers[reg], Readers::In(_)));
    for block in function.layout().to_vec() {
        let mut out = Vec::with_capacity(function[block].len());
        let mut placed: Vec<InstId> = Vec::new();
        for inst in std::mem::take(&mut function[block]) {
            let mut own = None;
            if function[inst].op == Op::UNDEF {
                function.for_each_def(inst, |reg| own = moves(reg));
            }
            if own.is_some() {
                continue;
            }
            function.for_each_use(inst, |reg| {
                if let Some(undef) = moves(reg).filter(|undef| !placed.contains(undef)) {
                    placed.push(undef);
                    out.push(undef);
                }
            });
            out.push(inst);
        }
        function[block] = out;
    }
}
