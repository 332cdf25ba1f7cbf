//! Parses and folds constant expressions into one [`Constant`].
//!
//! Integers are 64 bits wide, signed unless an operand is unsigned, and wrap. Nesting is limited.
//! Source: PTX ISA 9.0, section 4.5.

use super::ast::Constant;
use super::lexer::{Tok, Token};
use super::parser::{Parse, Parser};

/// Deepest nesting of parentheses and prefix operators.
const MAX_DEPTH: u32 = 64;

/// The error for a float where an operator takes integers alone.
const INTEGER: &str = "Integer constant expression expected";

/// Threads of a warp, the value of `WARP_SZ` (PTX ISA 9.0, 4.4).
const WARP_SIZE: u64 = 32;

/// Binary operators by falling precedence; operators in one string share a precedence.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'a> Parser<'a> {
    /// Whether a constant expression can start here.
    pub fn starts_constant(&self) -> bool {
        let token = self.peek();
        match token.tok {
            Tok::Int | Tok::Float => true,
            Tok::Sign => matches!(self.text(token), "-" | "+" | "~" | "!" | "("),
            Tok::Ident => self.text(token) == "WARP_SZ",
            _ => false,
        }
    }

    /// A constant expression.
    pub fn constant(&mut self) -> Parse<Constant> {
        // Nearly every constant is a single literal, which need not pass through the levels.
        let (token, after) = (self.peek(), self.peek_ahead(1));
        if matches!(token.tok, Tok::Int | Tok::Float) && matches!(self.text(after), "," | ";" | "]" | "}") {
            self.next();
            return self.literal(token);
        }
        self.conditional(0)
    }

    /// A constant expression whose value is an integer.
    pub fn integer(&mut self) -> Parse<i64> {
        let pos = self.pos();
        match self.constant()? {
            Constant::Int { bits, .. } => Ok(bits as i64),
            _ => Err(self.error(pos, "Integer constant expected")),
        }
    }

    /// A non-negative integer that fits 32 bits, as directives take.
    pub fn small(&mut self) -> Parse<u32> {
        let pos = self.pos();
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(pos, "Constant overflow"))
    }

    fn conditional(&mut self, depth: u32) -> Parse<Constant> {
        let pos = self.pos();
        let condition = self.binary(0, depth)?;
        if !self.accept_sign("?") {
            return Ok(condition);
        }
        self.check_depth(depth)?;
        let yes = self.conditional(depth + 1)?;
        self.expect_sign(":")?;
        let no = self.conditional(depth + 1)?;
        if [condition, yes, no].iter().any(|value| !matches!(value, Constant::Int { .. })) {
            return Err(self.error(pos, INTEGER));
        }
        Ok(if truth(condition) { yes } else { no })
    }

    fn binary(&mut self, level: usize, depth: u32) -> Parse<Constant> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.binary(level + 1, depth)?;
        loop {
            let token = self.peek();
            let sign = self.text(token);
            if token.tok != Tok::Sign || !operators.contains(&sign) {
                return Ok(left);
            }
            self.next();
            let right = self.binary(level + 1, depth)?;
            let is_int = |value| matches!(value, Constant::Int { .. });
            if is_int(left) != is_int(right) {
                return Err(self.error(token.pos, "Constant expression type mismatch"));
            }
            left = match fold(sign, left, right) {
                Ok(value) => value,
                Err(INTEGER) => return Err(self.error(token.pos, INTEGER)),
                Err(message) => return Err(self.syntax(token.pos, message)),
            };
        }
    }

    fn check_depth(&mut self, depth: u32) -> Parse<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let pos = self.pos();
        Err(self.error(pos, format!("Constant expression is nested deeper than {MAX_DEPTH} levels")))
    }

    fn unary(&mut self, depth: u32) -> Parse<Constant> {
        self.check_depth(depth)?;
        let token = self.peek();
        match (token.tok, self.text(token)) {
            (Tok::Int | Tok::Float, _) => {
                self.next();
                self.literal(token)
            }
            (Tok::Ident, "WARP_SZ") => {
                self.next();
                Ok(int(WARP_SIZE))
            }
            (Tok::Sign, sign @ ("-" | "+" | "~" | "!")) => {
                self.next();
                // ptxas takes no sign in front of the bits of an f32, but one in front of `(0f…)`.
                let bits = self.peek();
                if bits.tok == Tok::Float && self.text(bits).to_ascii_lowercase().starts_with("0f") {
                    return Err(self.unexpected());
                }
                let value = self.unary(depth + 1)?;
                prefix(sign, value).ok_or(()).map_err(|()| self.error(token.pos, INTEGER))
            }
            (Tok::Sign, "(") => self.parenthesis(depth),
            _ => Err(self.unexpected()),
        }
    }

    /// `(expression)`, or a cast: `(.s64) value`.
    fn parenthesis(&mut self, depth: u32) -> Parse<Constant> {
        self.expect_sign("(")?;
        let cast = if self.accept_dot(".s64") {
            Some(false)
        } else if self.accept_dot(".u64") {
            Some(true)
        } else {
            None
        };
        let Some(unsigned) = cast else {
            let value = self.conditional(depth + 1)?;
            self.expect_sign(")")?;
            return Ok(value);
        };
        self.expect_sign(")")?;
        let value = self.unary(depth + 1)?;
        match value {
            Constant::Int { bits, .. } => Ok(Constant::Int { bits, unsigned }),
            _ => Err(self.error(self.pos(), INTEGER)),
        }
    }

    fn literal(&mut self, token: Token) -> Parse<Constant> {
        let text = self.text(token);
        let value = if token.tok == Tok::Int { parse_int(text) } else { parse_float(text) };
        value.ok_or(()).map_err(|()| self.error(token.pos, "Constant overflow"))
    }
}

fn int(bits: u64) -> Constant {
    Constant::Int { bits, unsigned: false }
}

/// An integer literal; without `U` it is signed if it fits.
pub fn parse_int(text: &str) -> Option<Constant> {
    let (body, marked) = text.strip_suffix('U').map_or((text, false), |body| (body, true));
    let lower = body.to_ascii_lowercase();
    let bits = match (lower.strip_prefix("0x"), lower.strip_prefix("0b")) {
        (Some(hex), _) => u64::from_str_radix(hex, 16),
        (_, Some(bin)) => u64::from_str_radix(bin, 2),
        _ if lower.starts_with('0') => u64::from_str_radix(&lower, 8),
        _ => lower.parse(),
    };
    let bits = bits.ok()?;
    Some(Constant::Int { bits, unsigned: marked || bits > i64::MAX as u64 })
}

fn parse_float(text: &str) -> Option<Constant> {
    match text.get(..2) {
        Some("0f" | "0F") => u32::from_str_radix(&text[2..], 16).ok().map(Constant::F32),
        Some("0d" | "0D") => u64::from_str_radix(&text[2..], 16).ok().map(Constant::F64),
        _ => text.parse::<f64>().ok().filter(|v| v.is_finite()).map(|v| Constant::F64(v.to_bits())),
    }
}

fn truth(value: Constant) -> bool {
    match value {
        Constant::Int { bits, .. } => bits != 0,
        float => as_f64(float) != 0.0,
    }
}

/// The value of a float constant; integers are converted.
fn as_f64(value: Constant) -> f64 {
    match value {
        Constant::Int { bits, unsigned: true } => bits as f64,
        Constant::Int { bits, unsigned: false } => bits as i64 as f64,
        Constant::F32(bits) => f64::from(f32::from_bits(bits)),
        Constant::F64(bits) => f64::from_bits(bits),
    }
}

fn prefix(sign: &str, value: Constant) -> Option<Constant> {
    Some(match (sign, value) {
        ("+", _) => value,
        ("-", Constant::Int { bits, unsigned }) => Constant::Int { bits: bits.wrapping_neg(), unsigned },
        // The sign bit alone, so that NaNs keep their payload.
        ("-", Constant::F32(bits)) => Constant::F32(bits ^ 1 << 31),
        ("-", Constant::F64(bits)) => Constant::F64(bits ^ 1 << 63),
        ("!", Constant::Int { bits, .. }) => int(u64::from(bits == 0)),
        ("~", Constant::Int { bits, unsigned }) => Constant::Int { bits: !bits, unsigned },
        _ => return None,
    })
}

fn fold(sign: &str, left: Constant, right: Constant) -> Result<Constant, &'static str> {
    match (sign, left, right) {
        (_, Constant::Int { bits: a, unsigned: u }, Constant::Int { bits: b, unsigned: v }) => {
            fold_int(sign, (a, u), (b, v))
        }
        _ => fold_float(sign, as_f64(left), as_f64(right)),
    }
}

fn fold_int(sign: &str, (a, u): (u64, bool), (b, v): (u64, bool)) -> Result<Constant, &'static str> {
    let unsigned = u || v;
    let (x, y) = (a as i64, b as i64);
    let order = if unsigned { a.cmp(&b) } else { x.cmp(&y) };
    let compare = |holds: bool| Ok(int(u64::from(holds)));
    let bits = match sign {
        "&&" => return compare(a != 0 && b != 0),
        "||" => return compare(a != 0 || b != 0),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err("Constant expression has division by zero"),
        "/" if unsigned => a / b,
        "/" => x.wrapping_div(y) as u64,
        "%" if unsigned => a % b,
        "%" => x.wrapping_rem(y) as u64,
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        // The left operand alone decides the type of a shift.
        "<<" => return Ok(Constant::Int { bits: a.checked_shl(b.min(64) as u32).unwrap_or(0), unsigned: u }),
        ">>" if u => return Ok(Constant::Int { bits: a.checked_shr(b.min(64) as u32).unwrap_or(0), unsigned: u }),
        ">>" => return Ok(Constant::Int { bits: (x >> b.min(63)) as u64, unsigned: u }),
        "==" => return compare(order.is_eq()),
        "!=" => return compare(order.is_ne()),
        "<" => return compare(order.is_lt()),
        ">" => return compare(order.is_gt()),
        "<=" => return compare(order.is_le()),
        ">=" => return compare(order.is_ge()),
        _ => return Err(INTEGER),
    };
    Ok(Constant::Int { bits, unsigned })
}

fn fold_float(sign: &str, a: f64, b: f64) -> Result<Constant, &'static str> {
    let compare = |holds: bool| Ok(int(u64::from(holds)));
    let value = match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "==" => return compare(a == b),
        "!=" => return compare(a != b),
        "<" => return compare(a < b),
        ">" => return compare(a > b),
        "<=" => return compare(a <= b),
        ">=" => return compare(a >= b),
        _ => return Err(INTEGER),
    };
    Ok(Constant::F64(value.to_bits()))
}
