//! The driver functions that a kernel may call: printf, malloc, free, the failed-assertion
//! handlers, and those for textures and surfaces.
//!
//! Arguments and results are in registers by the calling convention (R4 and up, return address in
//! R20). Freed memory stays readable and its address is never reused. The output of printf is not
//! kept; its arguments are counted.

use super::super::fault::Fault;
use super::super::link::{SYSTEM, SYSTEM_BASE};
use super::super::memory::Global;
use super::image_call;
use super::warp::Warp;
use crate::tables::images::{FUNCTIONS, Function};

/// First register of arguments and results.
const FIRST: usize = 4;
/// First register of the return address.
const RETURN: usize = 20;
/// Largest allocation of `malloc` in bytes; a larger request returns null.
const MOST_HEAP: u64 = 1 << 30;
/// Longest string that is read, in bytes.
const LONGEST: u64 = 1 << 16;

/// The driver function at an address.
pub fn at(address: u64) -> Option<&'static str> {
    let offset = address.checked_sub(SYSTEM_BASE).filter(|offset| offset % 16 == 0)?;
    let number = usize::try_from(offset / 16).ok()?;
    let images = FUNCTIONS.iter().map(|function| function.name);
    SYSTEM.iter().copied().chain(images).nth(number)
}

/// Executes a driver function for one lane and returns the address where the lane continues.
///
/// # Errors
///
/// A failed assertion, or a string outside global memory.
pub fn call(global: &mut Global, w: &mut Warp, lane: usize, name: &str) -> Result<u64, Fault> {
    let pair = |w: &Warp, first: usize| u64::from(w.reg(first, lane)) | u64::from(w.reg(first + 1, lane)) << 32;
    let (first, back) = (pair(w, FIRST), pair(w, RETURN));
    if SYSTEM.contains(&name) {
        w.lose(lane);
        w.lose_uniform();
    }
    match name {
        "malloc" => {
            let got = match first {
                size if size > MOST_HEAP => 0,
                size => global.allocate("memory of malloc", vec![0; size as usize], true),
            };
            w.set_reg(FIRST, lane, got as u32);
            w.set_reg(FIRST + 1, lane, (got >> 32) as u32);
        }
        "free" => {}
        "vprintf" => {
            let count = conversions(&string(global, first)?);
            w.set_reg(FIRST, lane, count);
        }
        _ if let Some((_, function)) = Function::by_name(name) => {
            image_call::call(global, w, lane, function).map_err(|fault| fault.on_lane(lane))?;
        }
        _ => {
            let message = string(global, first)?;
            return Err(Fault::new(format!("assertion `{message}` failed")).on_lane(lane));
        }
    }
    Ok(back)
}

/// Reads a zero-terminated string.
fn string(global: &mut Global, address: u64) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    for at in address..address.saturating_add(LONGEST) {
        match global.slice(at, 1, false)?[0] {
            0 => break,
            byte => bytes.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Number of arguments that a format string takes.
fn conversions(format: &str) -> u32 {
    let mut count = 0;
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            continue;
        }
        for c in rest.by_ref() {
            count += u32::from(c == '*');
            if c == '%' || c.is_ascii_alphabetic() && !"hlLzjt".contains(c) {
                count += u32::from(c != '%');
                break;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_counted() {
        assert_eq!(conversions("a %d b %% c %-5.3f %*d %lld\n"), 5);
        assert_eq!(at(SYSTEM_BASE + 16), Some("malloc"));
        let all = (SYSTEM.len() + FUNCTIONS.len()) as u64;
        assert_eq!(at(SYSTEM_BASE + 16 * SYSTEM.len() as u64), Some(FUNCTIONS[0].name));
        assert_eq!((at(SYSTEM_BASE + 8), at(SYSTEM_BASE + 16 * all), at(0)), (None, None, None));
    }
}
