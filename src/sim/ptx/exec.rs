//! Runs one thread until it ends, has to wait, or has used up its share of instructions.
//!
//! An instruction executes completely or faults. A fault leaves the thread at the faulting
//! instruction.

use super::barrier::{Arrival, BARRIERS, Barrier};
use super::memory::put;
use super::program::{Act, SOURCES, Sink, Src};
use super::state::{LANES, Scene, Thread, Wait};
use super::warp::{Collective, Party};
use super::watch::{lack, lacking};
use crate::sim::fault::{self, Fault};
use smallvec::SmallVec;

impl Scene<'_> {
    /// Runs a thread for at most `share` instructions and returns how many it executed.
    ///
    /// # Errors
    ///
    /// The fault of an instruction, or the launch's step limit.
    pub fn run(&mut self, thread: &mut Thread, share: u64) -> Result<u64, Fault> {
        let start = self.steps;
        let env = self.env;
        while thread.wait == Wait::Nothing && self.steps - start < share {
            if self.steps >= env.step_limit {
                return Err(Fault::of(fault::Kind::StepLimit, format!("gave up after {} instructions", self.steps)));
            }
            self.steps += 1;
            env.stop(thread, self.block);
            let inst = &env.program.functions[thread.function].insts[thread.pc];
            let Some((cell, negated)) = inst.guard else {
                self.act(thread, &inst.act)?;
                continue;
            };
            let unknown = thread.lacking(cell) & 1 != 0;
            let open = if unknown { self.unknown_guard(thread, cell, &inst.act) } else { SmallVec::new() };
            if (thread.cell(cell) != 0) == negated {
                thread.pc += 1;
            } else {
                self.act(thread, &inst.act)?;
            }
            open.into_iter().for_each(|dst| thread.lack(dst, u64::MAX));
        }
        Ok(self.steps - start)
    }

    fn act(&mut self, thread: &mut Thread, act: &Act) -> Result<(), Fault> {
        match act {
            Act::Compute { f, src, dst } => {
                let mut s = [0; SOURCES];
                for (slot, src) in s.iter_mut().zip(src) {
                    *slot = self.value(thread, src);
                }
                let open = self.depending(thread, src, &**f);
                for (sink, value) in dst.iter().zip(f(&s)) {
                    put(thread, *sink, value);
                }
                for (sink, bits) in dst.iter().zip(open.unwrap_or_default()) {
                    lack(thread, *sink, bits);
                }
            }
            Act::Move { from, to } => self.pieces(thread, from, to),
            Act::Transfer(transfer) => self.transfer(thread, transfer)?,
            Act::Copy(copy) => self.copy(thread, copy)?,
            Act::Bulk(bulk) => self.copy_in_bulk(thread, bulk)?,
            Act::Remote(remote) => self.store_in_cluster(thread, remote)?,
            Act::Cancel(cancel) => self.cancel(thread, cancel)?,
            Act::Sample(sample) => self.sample(thread, sample)?,
            Act::Ask(ask) => self.ask(thread, ask)?,
            Act::Surface(access) => self.surface(thread, access)?,
            Act::Tensor(copy) => self.copy_tensor(thread, copy)?,
            Act::Replace(replace) => self.replace_in_map(thread, replace)?,
            Act::Publish(to, from) => self.publish_map(thread, to, from)?,
            Act::Clear(to, bytes) => self.clear(thread, to, bytes)?,
            Act::Atomic(atomic) => self.atomic(thread, atomic)?,
            Act::TensorUnit(unit) => self.tensor_unit(thread, unit)?,
            Act::Mbarrier(mbarrier) => self.mbarrier(thread, mbarrier)?,
            Act::Address { how, src, dst } => {
                let value = how.apply(self.value(thread, src));
                let open = self.depending(thread, &[*src], &|s| [how.apply(s[0]), 0]);
                thread.put(*dst, value);
                lack(thread, Some(*dst), open.unwrap_or_default()[0]);
            }
            Act::Branch(target) => {
                thread.pc = *target as usize;
                return Ok(());
            }
            Act::Table(index, targets) => {
                self.decide(thread, "a branch", index);
                let index = self.value(thread, index);
                let Some(target) = targets.get(index as usize) else {
                    return Err(Fault::new(format!("index {index} is beyond the {} targets", targets.len())));
                };
                thread.pc = *target as usize;
                return Ok(());
            }
            Act::Call(call) => return self.call(thread, call),
            Act::Stack(stack) => self.stack(thread, stack)?,
            Act::Return => return self.leave(thread),
            Act::Exit => {
                thread.wait = Wait::Ended;
                return Ok(());
            }
            Act::Trap(what) => return Err(Fault::of(fault::Kind::Trap, *what)),
            Act::Collective(collective) => return self.wait_for_lanes(thread, collective),
            Act::Barrier(barrier) => return self.wait_at(thread, barrier),
            Act::ClusterArrive => self.arrive_in_cluster(thread)?,
            Act::ClusterWait(barrier) if self.env.is_alone() => return self.wait_at(thread, barrier),
            Act::ClusterWait(_) => return self.wait_for_cluster(thread),
            Act::Nothing => {}
            Act::Refused(reason) => return Err(Fault::refused(format!("{reason} is not executed by the interpreter"))),
        }
        thread.pc += 1;
        Ok(())
    }

    /// Moves a bit string that is split into pieces on both sides: pack, unpack and plain moves.
    fn pieces(&self, thread: &mut Thread, from: &[(Src, u32)], to: &[(Sink, u32)]) {
        if let ([(src, _)], [(sink, _)]) = (from, to) {
            let (value, lacks) = (self.value(thread, src), lacking(thread, src));
            put(thread, *sink, value);
            return lack(thread, *sink, lacks);
        }
        let (mut values, mut lacks) = ([0u64; 16], [0u64; 16]);
        for ((slot, lacks), (src, _)) in values.iter_mut().zip(&mut lacks).zip(from) {
            (*slot, *lacks) = (self.value(thread, src), lacking(thread, src));
        }
        distribute(&values, from, to, |sink, value| put(thread, sink, value));
        if lacks != [0; 16] {
            distribute(&lacks, from, to, |sink, bits| lack(thread, sink, bits));
        }
    }

    fn wait_for_lanes(&mut self, thread: &mut Thread, c: &Collective) -> Result<(), Fault> {
        let Party::Mask(src) = c.party else {
            thread.wait = Wait::Company;
            return Ok(());
        };
        self.decide(thread, "convergence", &src);
        let mask = self.value(thread, &src) as u32;
        if mask >> (thread.lane % LANES as u32) & 1 == 0 {
            return Err(Fault::new(format!("the executing lane is not in the mask {mask:#010x}")));
        }
        thread.wait = Wait::Lanes { mask, kind: c.kind };
        Ok(())
    }

    fn wait_at(&mut self, thread: &mut Thread, b: &Barrier) -> Result<(), Fault> {
        for src in [Some(b.number), b.count, b.predicate].iter().flatten() {
            self.decide(thread, "a barrier", src);
        }
        let number = self.value(thread, &b.number);
        if number >= BARRIERS as u64 {
            return Err(Fault::new(format!("barrier {number}; there are {BARRIERS}")));
        }
        let count = b.count.map(|src| self.value(thread, &src) as u32).filter(|count| *count != 0);
        if let Some(count) = count.filter(|count| count % LANES as u32 != 0) {
            return Err(Fault::new(format!("a barrier for {count} threads, which is no multiple of {LANES}")));
        }
        let predicate = b.predicate.is_some_and(|src| self.value(thread, &src) != 0);
        thread.wait = Wait::Barrier(Arrival { kind: b.kind, number: number as u8, count, predicate, dst: b.dst });
        Ok(())
    }
}

/// Splits the concatenated bits of the `from` pieces into the `to` pieces.
fn distribute(values: &[u64; 16], from: &[(Src, u32)], to: &[(Sink, u32)], mut give: impl FnMut(Sink, u64)) {
    if from.len() == to.len() {
        to.iter().zip(values).for_each(|((sink, _), value)| give(*sink, *value));
        return;
    }
    let mut word = 0u128;
    let mut at = 0;
    for (value, (_, bits)) in values.iter().zip(from) {
        word |= u128::from(*value) << at;
        at += bits;
    }
    for (sink, bits) in to {
        give(*sink, word as u64 & super::values::mask(*bits));
        word >>= bits;
    }
}
