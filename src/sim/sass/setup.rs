//! What is fixed for a launch: code, constant banks, geometry, windows.
//!
//! Input: made by `run` from a cubin and a launch. Output: read by the executor. Invariant: a byte of constant bank 0
//! that the machine does not provide is known as such; reading it is a fault that names the offset.

use super::super::fault::Fault;
use super::code::Code;

/// The constant banks.
#[derive(Clone, Debug, Default)]
pub struct Banks {
    banks: Vec<Bank>,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    bytes: Vec<u8>,
    /// Which bytes have a value.
    given: Vec<bool>,
}

impl Banks {
    /// Puts bytes into a bank.
    pub fn put(&mut self, bank: u8, at: u32, bytes: &[u8]) {
        let (bank, at) = (usize::from(bank), at as usize);
        self.banks.resize(self.banks.len().max(bank + 1), Bank::default());
        let bank = &mut self.banks[bank];
        let end = at + bytes.len();
        bank.bytes.resize(bank.bytes.len().max(end), 0);
        bank.given.resize(bank.bytes.len(), false);
        bank.bytes[at..end].copy_from_slice(bytes);
        bank.given[at..end].fill(true);
    }

    /// Bytes of a bank.
    pub fn slice(&self, bank: u8, at: u32, width: u32) -> Result<&[u8], Fault> {
        let range = at as usize..at as usize + width as usize;
        if !at.is_multiple_of(width.max(1)) {
            return Err(Fault::new(format!("misaligned read of {width} bytes of c[{bank:#x}][{at:#x}]")));
        }
        let found = self.banks.get(usize::from(bank)).and_then(|b| {
            let given = b.given.get(range.clone())?.iter().all(|given| *given);
            given.then(|| &b.bytes[range])
        });
        found
            .ok_or_else(|| Fault::refused(format!("c[{bank:#x}][{at:#x}] ({width} bytes) has no value in this launch")))
    }
}

/// Everything that a launch fixes.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub code: Vec<Code>,
    /// Why instructions cannot be executed.
    pub reasons: Vec<String>,
    pub banks: Banks,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: usize,
    /// The uniform register that a launch leaves zero, where it does.
    pub zeroed: Option<u8>,
    /// Bytes of shared memory of a block, the system's part included.
    pub shared_bytes: usize,
    /// Bytes of local memory of a lane.
    pub local_bytes: usize,
    /// Generic addresses of the windows of shared and local memory, and of the code.
    pub shared_window: u64,
    pub local_window: u64,
    pub code_base: u64,
    /// Instructions of all warps together after which a launch is given up.
    pub step_limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_know_what_they_hold() {
        let mut banks = Banks::default();
        banks.put(0, 0x160, &[1, 2, 3, 4]);
        assert_eq!(banks.slice(0, 0x160, 4).expect("given"), [1, 2, 3, 4]);
        assert!(banks.slice(0, 0x15c, 4).expect_err("absent").what.contains("c[0x0][0x15c]"));
        assert!(banks.slice(0, 0x160, 8).is_err() && banks.slice(3, 0, 4).is_err());
        assert!(banks.slice(0, 0x161, 2).expect_err("odd").what.contains("misaligned"));
    }
}
