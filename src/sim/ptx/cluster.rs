//! Executes `st.async` and `red.async` (PTX ISA 9.7.9.12 and 9.7.13.7) in a cluster of one block.
//!
//! A store completes when it is issued, and the barrier learns of its bytes then. An address in
//! another block is out of bounds.

use super::atomic::next;
use super::mbarrier::{How, Mbarrier};
use super::memory::Address;
use super::program::Src;
use super::state::{Scene, Thread};
use crate::sim::fault::Fault;
use crate::sim::memory::store;
use crate::tables::ptx::{AtomOp, ScalarType, Space};

/// A store in a block of the cluster.
#[derive(Clone, Debug)]
pub struct Remote {
    pub to: Address,
    pub values: Vec<Src>,
    pub ty: ScalarType,
    pub barrier: Address,
    /// The operation that joins the old value and the new one.
    pub reduces: Option<AtomOp>,
}

impl Scene<'_> {
    /// Performs a store in a block of the cluster immediately.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access, and what the barrier does not allow.
    pub fn store_in_cluster(&mut self, thread: &mut Thread, remote: &Remote) -> Result<(), Fault> {
        self.decide(thread, "the address of a store", &remote.to.base);
        let ((space, first), width) = (self.locate(thread, &remote.to), u64::from(remote.ty.bits() / 8));
        let bytes = width * remote.values.len() as u64;
        self.bytes(thread, (space, first), bytes, true)?;
        for (at, src) in (first..).step_by(width as usize).zip(&remote.values) {
            self.decide(thread, "what is stored in a block of the cluster", src);
            let (old, new) = (self.load(thread, (space, at), width)?, self.value(thread, src));
            let value = match remote.reduces {
                Some(op) => next(op, remote.ty, Space::Shared, old.into(), new.into(), 0) as u64,
                None => new,
            };
            self.written(thread, (space, at), width, value, 0);
            store(self.bytes(thread, (space, at), width, true)?, value);
        }
        let number = Some(Src::Imm(bytes));
        self.mbarrier(thread, &Mbarrier { how: How::Complete, address: remote.barrier, number, dst: None })
    }
}
