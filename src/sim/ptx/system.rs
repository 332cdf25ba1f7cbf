//! Executes the system functions that a program may call without defining them: `vprintf`,
//! `malloc`, `free` and the failed-assertion handlers.
//!
//! Arguments arrive as bytes. A call of any other undefined function is a fault that names it.

use super::memory::specific;
use super::state::{Scene, Thread};
use crate::sim::fault::Fault;
use crate::sim::memory::load;

/// Longest string that is read from the program's memory, in bytes.
const LONGEST: u64 = 1 << 16;
/// Largest allocation of `malloc` in bytes; a larger request returns null.
const MOST_HEAP: u64 = 1 << 30;

/// Calls a system function and returns its result.
///
/// # Errors
///
/// An unknown name, a failed assertion, or an access that faults.
pub fn call(scene: &mut Scene, thread: &mut Thread, name: &str, args: &[Vec<u8>]) -> Result<u64, Fault> {
    let arg = |n: usize| args.get(n).map_or(0, |bytes: &Vec<u8>| load(&bytes[..bytes.len().min(8)]));
    match name {
        "vprintf" => print(scene, thread, arg(0), arg(1)),
        "malloc" if arg(0) > MOST_HEAP => Ok(0),
        "malloc" => Ok(scene.global.allocate("memory of malloc", vec![0; arg(0) as usize], true)),
        // Freed memory stays readable, and its address is never reused.
        "free" => Ok(0),
        "__assertfail" | "__assert_fail" => {
            let mut text = |n| string(scene, thread, arg(n));
            let (message, file, function) = (text(0)?, text(1)?, text(3)?);
            Err(Fault::new(format!("assertion `{message}` failed in {function} ({file}:{})", arg(2))))
        }
        _ => Err(Fault::new(format!("call of {name}, which has no body"))),
    }
}

/// Reads a zero-terminated string.
fn string(scene: &mut Scene, thread: &mut Thread, address: u64) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    for at in address..address.saturating_add(LONGEST) {
        match scene.load(thread, specific(at), 1)? {
            0 => break,
            byte => bytes.push(byte as u8),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `vprintf(format, arguments)`: the arguments are consecutive, each aligned to its size. Returns
/// the number of arguments.
fn print(scene: &mut Scene, thread: &mut Thread, format: u64, arguments: u64) -> Result<u64, Fault> {
    let format = string(scene, thread, format)?;
    let (mut at, mut count) = (arguments, 0);
    let mut rest = format.chars().peekable();
    let mut out = String::new();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = String::new();
        while let Some(&next) = rest.peek() {
            rest.next();
            if next == '*' {
                // A width or precision given by an argument.
                at = at.next_multiple_of(4);
                spec += &(scene.load(thread, specific(at), 4)? as i32).to_string();
                (at, count) = (at + 4, count + 1);
                continue;
            }
            spec.push(next);
            if next.is_ascii_alphabetic() && !"hlLzjt".contains(next) || next == '%' {
                break;
            }
        }
        let Some(kind) = spec.pop() else { break };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let long = spec.contains(['l', 'z', 'j', 't']) || "eEfFgGaAsp".contains(kind);
        let width = if long { 8 } else { 4 };
        at = at.next_multiple_of(width);
        let value = scene.load(thread, specific(at), width)?;
        at += width;
        count += 1;
        let text = if kind == 's' { Some(string(scene, thread, value)?) } else { None };
        out += &show(&spec, kind, value, long, text);
    }
    scene.printed.extend_from_slice(out.as_bytes());
    Ok(count)
}

/// Formats one conversion with its flags, width and precision.
fn show(spec: &str, kind: char, value: u64, long: bool, text: Option<String>) -> String {
    let signed = if long { value as i64 } else { i64::from(value as i32) };
    let flags: String = spec.chars().take_while(|c| "-+ #0".contains(*c)).collect();
    let numbers = spec[flags.len()..].trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (width, precision) = numbers.split_once('.').map_or((numbers, None), |(w, p)| (w, Some(p)));
    let precision = precision.map(|p| p.parse::<usize>().unwrap_or(0));
    let float = f64::from_bits(value);
    let sign = |negative: bool| match negative {
        true => "-",
        false if flags.contains('+') => "+",
        false if flags.contains(' ') => " ",
        false => "",
    };
    let digits = |digits: String| format!("{digits:0>0$}", precision.unwrap_or(0));
    let (before, body) = match kind {
        'd' | 'i' => (sign(signed < 0), digits(signed.unsigned_abs().to_string())),
        'u' => ("", digits(value.to_string())),
        'x' => (if flags.contains('#') && value != 0 { "0x" } else { "" }, digits(format!("{value:x}"))),
        'X' => (if flags.contains('#') && value != 0 { "0X" } else { "" }, digits(format!("{value:X}"))),
        'o' => ("", digits(format!("{value:o}"))),
        'p' => ("0x", format!("{value:x}")),
        'c' => ("", (value as u8 as char).to_string()),
        's' => {
            let text = text.unwrap_or_default();
            ("", precision.map_or(text.clone(), |n| text.chars().take(n).collect()))
        }
        _ if float.is_nan() => (sign(float.is_sign_negative()), "nan".into()),
        _ if float.is_infinite() => (sign(float < 0.0), "inf".into()),
        'e' | 'E' => (sign(float.is_sign_negative()), exponential(float.abs(), precision.unwrap_or(6))),
        'g' | 'G' => (sign(float.is_sign_negative()), general(float.abs(), precision.unwrap_or(6))),
        _ => (sign(float.is_sign_negative()), format!("{:.*}", precision.unwrap_or(6), float.abs())),
    };
    let width = width.parse::<usize>().unwrap_or(0);
    let fill = width.saturating_sub(before.len() + body.chars().count());
    if flags.contains('-') {
        format!("{before}{body}{:fill$}", "")
    } else if flags.contains('0') && precision.is_none_or(|_| "eEfFgG".contains(kind)) && kind != 's' {
        format!("{before}{:0>fill$}{body}", "")
    } else {
        format!("{:fill$}{before}{body}", "")
    }
}

/// Formats as `%e`: `d.ddde±dd`.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let number: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if number < 0 { '-' } else { '+' }, number.abs())
}

/// Formats as `%g`: the shorter of both forms, without trailing zeros.
fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let text = exponential(value, precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let number: i32 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if number < -4 || number >= precision as i32 {
        return format!("{}e{exponent}", bare(mantissa));
    }
    bare(&format!("{value:.*}", (precision as i32 - 1 - number).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions() {
        let float = |spec, kind, x: f64| show(spec, kind, x.to_bits(), true, None);
        assert_eq!(show("5", 'd', 0xffff_fff6, false, None), "  -10");
        assert_eq!(show("-5", 'u', 7, false, None), "7    ");
        assert_eq!(show("08", 'x', 0xabcd, false, None), "0000abcd");
        assert_eq!(show("ll", 'd', u64::MAX, true, None), "-1");
        assert_eq!(float(".2", 'f', -1.5), "-1.50");
        assert_eq!(float("", 'e', 12345.678), "1.234568e+04");
        assert_eq!(float("", 'g', 0.0001), "0.0001");
        assert_eq!(float("", 'g', 1e10), "1e+10");
        assert_eq!(float("", 'g', 100000.0), "100000");
        assert_eq!(show(".2", 's', 0, true, Some("abc".into())), "ab");
    }
}
