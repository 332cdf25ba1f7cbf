//! Calls, returns and the stack instructions (PTX ISA 9.7.12.5).
//!
//! Arguments and results are register cells or bytes of the caller's frame. A function starts with
//! a frame of its own and with zeroed registers whose bits count as undefined. A return restores
//! the stack depth of the call.

use super::layout::{CODE_BASE, CODE_STEP, FRAME_ALIGN};
use super::memory::put;
use super::program::{Act, Dst, Function, Home, Sink, Src};
use super::state::{Frame, Scene, Thread, Wait};
use super::system;
use super::values::mask;
use super::watch::{lack, lacking};
use crate::sim::fault::Fault;
use crate::sim::memory::{flat, load};

/// Most bytes of local memory per thread that call frames may take up.
const MOST_LOCAL: usize = 1 << 23;
/// The address just past the memory that `alloca` hands out.
pub const TOP: u64 = 1 << 24;
/// Deepest call nesting.
const MOST_FRAMES: usize = 1 << 14;

/// The callee.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A function by its number.
    Function(usize),
    /// The address of a function, for an indirect call.
    Address(Src),
}

/// Where an argument comes from.
#[derive(Clone, Debug)]
pub enum From {
    /// Register cells.
    Cells(Vec<Src>),
    /// Bytes of the caller's frame.
    Frame { offset: u64, size: u64 },
}

/// Where a result goes.
#[derive(Clone, Debug)]
pub enum To {
    /// Register cells.
    Cells(Vec<Sink>),
    /// Bytes of the caller's frame.
    Frame { offset: u64, size: u64 },
}

/// An argument or result as bytes, with a mask of its undefined bits.
#[derive(Clone, Debug)]
struct Handed {
    bytes: Vec<u8>,
    lacks: Vec<u8>,
}

/// The operands of a call instruction.
#[derive(Clone, Debug)]
pub struct Call {
    /// The callee.
    pub target: Target,
    /// The arguments, in the order of the callee's parameters.
    pub args: Vec<From>,
    /// Where the results go, in the order of the callee's results.
    pub results: Vec<To>,
}

/// An instruction that works on the stack of the running function.
#[derive(Clone, Copy, Debug)]
pub enum Stack {
    /// `alloca`: reserves `size` bytes at the given alignment and returns their address.
    Take { size: Src, align: u64, dst: Dst },
    /// `stacksave`: returns the stack depth.
    Save(Dst),
    /// `stackrestore`: returns to a saved depth.
    Restore(Src),
}

impl Scene<'_> {
    /// Executes a stack instruction. The stack that the program sees grows downwards.
    ///
    /// # Errors
    ///
    /// A stack overflow, or a restored depth that the stack never had.
    pub fn stack(&self, thread: &mut Thread, stack: &Stack) -> Result<(), Fault> {
        let depth = TOP - thread.taken.len() as u64;
        match stack {
            Stack::Take { size, align, dst } => {
                let at = depth.checked_sub(self.value(thread, size)).map_or(0, |at| at / align * align);
                if at <= thread.memory.len() as u64 {
                    return Err(Fault::new("stack overflow in alloca"));
                }
                thread.taken.splice(..0, std::iter::repeat_n(0, (depth - at) as usize));
                thread.taken_lacks.splice(..0, std::iter::repeat_n(u8::MAX, (depth - at) as usize));
                thread.put(*dst, at);
            }
            Stack::Save(dst) => thread.put(*dst, depth),
            Stack::Restore(src) => {
                let to = self.value(thread, src);
                if to < depth || to > TOP {
                    return Err(Fault::new(format!("{to:#x} is no depth that the stack had")));
                }
                thread.taken.drain(..(to - depth) as usize);
                thread.taken_lacks.drain(..(to - depth) as usize);
            }
        }
        Ok(())
    }

    /// Enters the callee. A function without a body is executed by [`system::call`].
    ///
    /// # Errors
    ///
    /// An indirect call to an address that is no function, a stack overflow, or a fault of the
    /// system function.
    pub fn call(&mut self, thread: &mut Thread, call: &Call) -> Result<(), Fault> {
        let env = self.env;
        let number = match call.target {
            Target::Function(number) => number,
            Target::Address(src) => {
                self.decide(thread, "a branch", &src);
                let address = self.value(thread, &src);
                let offset = address.wrapping_sub(CODE_BASE);
                let good = offset.is_multiple_of(CODE_STEP) && offset / CODE_STEP < env.program.functions.len() as u64;
                if !good {
                    return Err(Fault::new(format!("call of {address:#x}, which is no function")));
                }
                (offset / CODE_STEP) as usize
            }
        };
        let callee = &env.program.functions[number];
        let args = call.args.iter().map(|arg| self.argument(thread, arg)).collect::<Result<Vec<_>, _>>()?;
        if !callee.has_body {
            let args: Vec<Vec<u8>> = args.into_iter().map(|arg| arg.bytes).collect();
            let answer = system::call(self, thread, &callee.name, &args)?;
            if let Some(to) = call.results.first() {
                deliver(thread, to, &Handed { bytes: answer.to_le_bytes().to_vec(), lacks: vec![0; 8] })?;
            }
            thread.pc += 1;
            return Ok(());
        }
        let caller = &env.program.functions[thread.function];
        enter(thread, caller, callee, number)?;
        for (home, arg) in callee.params.iter().zip(&args) {
            write_home(thread, home, arg)?;
        }
        Ok(())
    }

    fn argument(&self, thread: &mut Thread, arg: &From) -> Result<Handed, Fault> {
        match arg {
            From::Cells(cells) => Ok(Handed {
                bytes: cells.iter().flat_map(|src| self.value(thread, src).to_le_bytes()).collect(),
                lacks: cells.iter().flat_map(|src| lacking(thread, src).to_le_bytes()).collect(),
            }),
            From::Frame { offset, size } => of_frame(thread, *offset, *size),
        }
    }

    /// Returns from the running function; the return of the kernel ends the thread.
    pub fn leave(&mut self, thread: &mut Thread) -> Result<(), Fault> {
        let Some(frame) = thread.frames.pop() else {
            thread.wait = Wait::Ended;
            return Ok(());
        };
        let callee = &self.env.program.functions[thread.function];
        let results = callee.results.iter().map(|home| read_home(thread, home)).collect::<Result<Vec<_>, _>>()?;
        thread.cells.truncate(thread.base);
        thread.lacks.truncate(thread.base);
        thread.memory.truncate(frame.depth);
        thread.memory_lacks.truncate(frame.depth);
        let taken = thread.taken.len().saturating_sub(frame.taken);
        thread.taken.drain(..taken);
        thread.taken_lacks.drain(..taken);
        (thread.function, thread.pc, thread.base, thread.local) =
            (frame.function, frame.pc + 1, frame.base, frame.local);
        let Act::Call(call) = &self.env.program.functions[frame.function].insts[frame.pc].act else { return Ok(()) };
        for (to, result) in call.results.iter().zip(&results) {
            deliver(thread, to, result)?;
        }
        Ok(())
    }
}

fn enter(thread: &mut Thread, caller: &Function, callee: &Function, number: usize) -> Result<(), Fault> {
    let depth = thread.memory.len();
    let local = (depth as u64).next_multiple_of(FRAME_ALIGN);
    let end = local.saturating_add(callee.frame) as usize;
    if end > MOST_LOCAL || thread.frames.len() >= MOST_FRAMES {
        return Err(Fault::new(format!("stack overflow in {}", callee.name)));
    }
    let (function, pc, base) = (thread.function, thread.pc, thread.base);
    let taken = thread.taken.len();
    thread.frames.push(Frame { function, pc, base, local: thread.local, depth, taken });
    thread.memory.resize(end, 0);
    thread.memory_lacks.resize(end, u8::MAX);
    thread.base += caller.cells as usize;
    thread.cells.resize(thread.base + callee.cells as usize, 0);
    thread.lacks.resize(thread.base + callee.cells as usize, u64::MAX);
    (thread.local, thread.function, thread.pc) = (local, number, 0);
    Ok(())
}

/// Reads a word of up to 8 bytes; the bytes past the end of the slice read as zero.
fn word(bytes: &[u8], index: usize) -> u64 {
    bytes.get(8 * index..).map_or(0, |rest| load(&rest[..rest.len().min(8)]))
}

/// Reads bytes of the running function's frame.
fn of_frame(thread: &mut Thread, offset: u64, size: u64) -> Result<Handed, Fault> {
    let at = thread.local + offset;
    let bytes = flat(&mut thread.memory, "local", at, size)?.to_vec();
    Ok(Handed { bytes, lacks: flat(&mut thread.memory_lacks, "local", at, size)?.to_vec() })
}

/// Writes bytes of the running function's frame.
fn into_frame(thread: &mut Thread, offset: u64, size: u64, handed: &Handed) -> Result<(), Fault> {
    let at = thread.local + offset;
    let Thread { memory, memory_lacks, .. } = thread;
    for (memory, from) in [(memory, &handed.bytes), (memory_lacks, &handed.lacks)] {
        let place = flat(memory, "local", at, size)?;
        let count = place.len().min(from.len());
        place[..count].copy_from_slice(&from[..count]);
    }
    Ok(())
}

fn write_home(thread: &mut Thread, home: &Home, handed: &Handed) -> Result<(), Fault> {
    match *home {
        // An array of unknown extent, at the end of the frame.
        Home::Local { offset, size: 0 } => {
            let (end, size) = ((thread.local + offset) as usize, handed.bytes.len());
            thread.memory.resize(end + size, 0);
            thread.memory_lacks.resize(end + size, u8::MAX);
            into_frame(thread, offset, size as u64, handed)?;
        }
        Home::Local { offset, size } => into_frame(thread, offset, size, handed)?,
        Home::Cells { first, cells, size, each } => {
            for n in 0..cells as usize {
                let left = mask(8 * (size as usize).saturating_sub(8 * (n % each as usize)).min(8) as u32);
                let at = thread.base + first as usize + n;
                thread.cells[at] = word(&handed.bytes, n) & left;
                thread.lacks[at] = word(&handed.lacks, n) & left;
            }
        }
    }
    Ok(())
}

fn read_home(thread: &mut Thread, home: &Home) -> Result<Handed, Fault> {
    match *home {
        Home::Local { offset, size } => of_frame(thread, offset, size),
        Home::Cells { first, cells, .. } => Ok(Handed {
            bytes: (first..first + cells).flat_map(|c| thread.cell(c).to_le_bytes()).collect(),
            lacks: (first..first + cells).flat_map(|c| thread.lacking(c).to_le_bytes()).collect(),
        }),
    }
}

fn deliver(thread: &mut Thread, to: &To, handed: &Handed) -> Result<(), Fault> {
    match to {
        To::Cells(sinks) => {
            for (n, sink) in sinks.iter().enumerate() {
                put(thread, *sink, word(&handed.bytes, n));
                lack(thread, *sink, word(&handed.lacks, n));
            }
            Ok(())
        }
        To::Frame { offset, size } => into_frame(thread, *offset, *size, handed),
    }
}
