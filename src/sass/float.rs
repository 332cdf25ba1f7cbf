//! Prints and parses floating-point immediates in the spelling of nvdisasm: 20 significant digits
//! for single and double precision.
//!
//! Parsing a printed number gives the same bits. A NaN gives one fixed payload, since the text does
//! not contain it.

use crate::tables::encoding::Kind;

/// Prints an operand of a floating-point kind; empty for other kinds.
pub fn print(kind: Kind, bits: u64) -> String {
    let (high, low) = ((bits >> 16) as u16, bits as u16);
    match kind {
        Kind::Float => single(bits as u32),
        Kind::Double => double(bits),
        Kind::Halves => format!("{}, {}", half(high), half(low)),
        Kind::Brains => format!("{}, {}", brain(high), brain(low)),
        Kind::Half => half(low),
        Kind::Brain => brain(low),
        _ => String::new(),
    }
}

/// Parses an operand of a floating-point kind.
pub fn parse(kind: Kind, text: &str) -> Option<u64> {
    let pair = |one: fn(&str) -> Option<u16>| {
        let (high, low) = text.split_once(',')?;
        Some(u64::from(one(high.trim())?) << 16 | u64::from(one(low.trim())?))
    };
    match kind {
        Kind::Float => parse_single(text).map(u64::from),
        Kind::Double => parse_double(text),
        Kind::Halves => pair(parse_half),
        Kind::Brains => pair(parse_brain),
        Kind::Half => parse_half(text).map(u64::from),
        Kind::Brain => parse_brain(text).map(u64::from),
        _ => None,
    }
}

/// Numbers from here on print with an exponent and twenty digits after the point.
const LARGE: f64 = 1e9;

/// Like C's `%.20g` below [`LARGE`] and like `%.20e` from there on; an f64 holds every value
/// exactly.
fn number(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0".into() } else { "0".into() };
    }
    if value.abs() >= LARGE {
        let text = format!("{value:.20e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{mantissa}e+{exponent:0>2}");
    }
    // `%.*g`: scientific below 1e-4 and from 10^digits on, without trailing zeros.
    let text = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", cut(mantissa), exponent.abs());
    }
    cut(&format!("{:.*}", (digits as i32 - 1 - exponent).max(0) as usize, value)).to_string()
}

fn cut(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Infinity or NaN; the top mantissa bit marks a quiet NaN.
fn special(negative: bool, mantissa: u64, quiet: bool) -> String {
    let sign = if negative { '-' } else { '+' };
    match (mantissa, quiet) {
        (0, _) => format!("{sign}INF"),
        (_, true) => format!("{sign}QNAN"),
        (_, false) => format!("{sign}SNAN"),
    }
}

/// Text of an f32.
fn single(bits: u32) -> String {
    let value = f32::from_bits(bits);
    if value.is_finite() {
        return number(value.into(), 20);
    }
    special(bits >> 31 != 0, u64::from(bits & 0x7f_ffff), bits >> 22 & 1 != 0)
}

/// Text of an f64.
fn double(bits: u64) -> String {
    let value = f64::from_bits(bits);
    if value.is_finite() {
        return number(value, 20);
    }
    special(bits >> 63 != 0, bits & ((1 << 52) - 1), bits >> 51 & 1 != 0)
}

/// Text of a bf16.
fn brain(bits: u16) -> String {
    single(u32::from(bits) << 16)
}

/// Bits of a bf16 from its text.
fn parse_brain(text: &str) -> Option<u16> {
    let bits = parse_single(text)?;
    (bits as u16 == 0 || special_bits(text, 7).is_some()).then_some((bits >> 16) as u16)
}

/// Text of an f16.
fn half(bits: u16) -> String {
    let (exponent, mantissa) = (bits >> 10 & 31, bits & 0x3ff);
    if exponent == 31 {
        return special(bits >> 15 != 0, mantissa.into(), bits >> 9 & 1 != 0);
    }
    number(half_value(bits), 20)
}

fn half_value(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let value =
        if exponent == 0 { mantissa * 2f64.powi(-24) } else { (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15) };
    if bits >> 15 != 0 { -value } else { value }
}

/// Parses infinity or NaN as (sign, mantissa of `width` bits).
fn special_bits(text: &str, width: u32) -> Option<(u64, u64)> {
    let negative = u64::from(text.starts_with('-'));
    match text.trim_start_matches(['+', '-']) {
        "INF" => Some((negative, 0)),
        // The most frequent payloads of ptxas: all ones, or none with a minus sign.
        "QNAN" if negative == 1 => Some((negative, 1 << (width - 1))),
        "QNAN" => Some((negative, (1 << width) - 1)),
        "SNAN" => Some((negative, (1 << (width - 1)) - 1)),
        _ => None,
    }
}

/// Bits of an f32 from its text.
fn parse_single(text: &str) -> Option<u32> {
    if let Some((sign, mantissa)) = special_bits(text, 23) {
        return Some((sign << 31 | 0xff << 23 | mantissa) as u32);
    }
    text.parse::<f32>().ok().filter(|v| v.is_finite()).map(f32::to_bits)
}

/// Bits of an f64 from its text.
fn parse_double(text: &str) -> Option<u64> {
    if let Some((sign, mantissa)) = special_bits(text, 52) {
        // Only the high word is stored.
        return Some((sign << 63 | 0x7ff << 52 | mantissa) & !0xffff_ffff);
    }
    text.parse::<f64>().ok().filter(|v| v.is_finite()).map(f64::to_bits)
}

/// Bits of an f16 from its text.
fn parse_half(text: &str) -> Option<u16> {
    if let Some((sign, mantissa)) = special_bits(text, 10) {
        return Some((sign << 15 | 31 << 10 | mantissa) as u16);
    }
    let value = text.parse::<f64>().ok().filter(|v| v.is_finite())?;
    let sign = u16::from(value.is_sign_negative()) << 15;
    // The value grows with the bits, so bisection finds the number.
    let (mut low, mut high) = (0u16, 0x7bff);
    while low < high {
        let middle = (low + high) / 2;
        if half_value(middle) < value.abs() { low = middle + 1 } else { high = middle }
    }
    (half_value(low) == value.abs()).then_some(sign | low)
}
