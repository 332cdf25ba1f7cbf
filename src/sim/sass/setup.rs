//! The constants of a launch: code, constant banks, grid and block sizes, address windows.
//!
//! Each byte of a constant bank is known to be provided or not. Reading a byte that is not provided
//! is a fault that names the offset.

use super::super::fault::Fault;
use super::code::Code;
use super::stop::Stop;

/// The constant banks.
#[derive(Clone, Debug, Default)]
pub struct Banks {
    banks: Vec<Bank>,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    bytes: Vec<u8>,
    /// Which bytes have been provided.
    given: Vec<bool>,
}

impl Banks {
    /// Writes bytes to a bank.
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

    /// Reads bytes of a bank.
    ///
    /// # Errors
    ///
    /// A misaligned read, or bytes that have no value in this launch.
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

/// The constants of a launch.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The executable instructions.
    pub code: Vec<Code>,
    /// Why instructions cannot be executed; see [`Exec::Refuse`](super::code::Exec::Refuse).
    pub reasons: Vec<String>,
    /// The constant banks.
    pub banks: Banks,
    /// Blocks in the grid, by axis.
    pub grid: [u32; 3],
    /// Threads in a block, by axis.
    pub block: [u32; 3],
    /// Blocks in a cluster, by axis.
    pub cluster: [u32; 3],
    /// Number of registers of a lane that are simulated.
    pub registers: usize,
    /// Number of registers of a lane at entry, if the code changes it.
    pub entry_registers: Option<u16>,
    /// The uniform register that is zero on kernel entry, if the target has one.
    pub zeroed: Option<u8>,
    /// Size of shared memory of a block in bytes, including the reserved part.
    pub shared_bytes: usize,
    /// Size of that part.
    pub reserved_bytes: usize,
    /// Where in it a block keeps what it allocates of tensor memory, and whether it allocates in
    /// pairs, if it allocates.
    pub tensor: Option<(usize, bool)>,
    /// Size of local memory of a lane in bytes.
    pub local_bytes: usize,
    /// Generic address of the shared window.
    pub shared_window: u64,
    /// Generic address of the local window.
    pub local_window: u64,
    /// Generic address of the code.
    pub code_base: u64,
    /// Limit on the instructions of all warps.
    pub step_limit: u64,
    /// Sees each lane before each instruction.
    pub inspect: Option<fn(&mut Stop<'_>)>,
}

impl Setup {
    /// Whether each block is a cluster of its own.
    pub fn is_alone(&self) -> bool {
        self.cluster.iter().product::<u32>() <= 1
    }
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
