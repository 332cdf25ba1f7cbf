//! Random C with mostly control flow: branches, loops, switches, jumps into and out of them, early
//! returns, calls.
//!
//! From a seed it makes functions, and `run(t)` for thread number `t`. Every program terminates,
//! because each backward step uses fuel; no operation has undefined behaviour; conditions depend on
//! the thread, so that lanes diverge and reconverge.

use crate::random::Random;
use std::fmt::Write;

/// Largest number of statements of a function.
const STATEMENTS: i32 = 60;

struct Function {
    random: Random,
    text: String,
    /// Number of statements that may still be generated.
    left: i32,
    /// Number of enclosing loops and switches.
    loops: usize,
    breakable: usize,
    /// Labels of the function, and how many of them are placed already.
    labels: usize,
    placed: usize,
    number: usize,
}

/// The program text of a seed.
pub fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let functions = 1 + random.below(3);
    let mut text =
        String::from("#define STATE_IN_A_STRUCT\n#include \"csmith.h\"\n#define NEVER __attribute__((noinline))\n");
    for number in 0..functions {
        let mut function = Function {
            random: Random::new(seed * 8 + number as u64 + 1),
            text: String::new(),
            left: STATEMENTS / (1 + i32::from(number + 1 < functions)),
            loops: 0,
            breakable: 0,
            labels: 0,
            placed: 0,
            number,
        };
        text += &function.whole();
    }
    let _ = writeln!(
        text,
        "static uint32_t run(uint32_t t) {{ uint32_t fuel = 150; return f{}(t * 2654435761u, t, &fuel); }}",
        functions - 1
    );
    text
}

impl Function {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn whole(&mut self) -> String {
        let labels = self.below(4);
        self.labels = labels;
        let count = 4 + self.below(8);
        self.block(count, 1);
        while self.placed < labels {
            self.label();
        }
        let body = std::mem::take(&mut self.text);
        let qualifiers = if self.below(2) == 0 { "static NEVER" } else { "static" };
        format!(
            "{qualifiers} uint32_t f{}(uint32_t a, uint32_t b, uint32_t *fuel)\n{{\n    uint32_t c = a ^ b, d = 7, e = b & 31, m[8];\n    \
             m[0] = a; m[1] = 2; m[2] = b; m[3] = 4; m[4] = 5; m[5] = 6; m[6] = 7; m[7] = 8;\n    \
             uint32_t i1 = 0, i2 = 0, i3 = 0, i4 = 0, i5 = 0;\n\
             {body}    return a * 31 + b * 17 + c * 13 + d * 7 + e + m[a & 7] * 3 + m[d & 7];\n}}\n",
            self.number
        )
    }

    fn block(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            if self.left <= 0 {
                return;
            }
            self.left -= 1;
            self.statement(depth);
        }
    }

    /// Places the next label here: jumps to it may enter a loop or a switch.
    fn label(&mut self) {
        let _ = writeln!(self.text, "L{}: ;", self.placed);
        self.placed += 1;
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "    ".repeat(depth));
    }

    fn nested(&mut self, depth: usize) {
        let count = 1 + self.below(3);
        self.block(count, depth + 1);
    }

    fn statement(&mut self, depth: usize) {
        if self.placed < self.labels && self.below(8) == 0 {
            self.label();
        }
        let choice = if depth > 5 { self.below(8) } else { self.below(22) };
        match choice {
            0..=4 => self.assignment(depth),
            5 | 6 => self.jump(depth),
            7 => self.call(depth),
            8..=12 => {
                let condition = self.condition();
                self.line(depth, &format!("if ({condition}) {{"));
                self.nested(depth);
                if self.below(2) == 0 {
                    self.line(depth, "} else {");
                    self.nested(depth);
                }
                self.line(depth, "}");
            }
            13..=18 => self.a_loop(depth),
            _ => self.switch(depth),
        }
    }

    fn assignment(&mut self, depth: usize) {
        let (to, value) = (self.variable(), self.value());
        let op = self.random.pick(&["=", "+=", "^=", "-=", "*=", "|=", "&="]).to_string();
        if self.below(5) == 0 {
            self.line(depth, &format!("m[{to} & 7] {op} {value};"));
        } else {
            self.line(depth, &format!("{to} {op} {value};"));
        }
    }

    /// Leaves an enclosing construct, or jumps to a label; a possibly backward jump uses fuel.
    fn jump(&mut self, depth: usize) {
        let mut ways = vec![format!("return {};", self.value())];
        if self.breakable > 0 {
            ways.push("break;".into());
        }
        if self.loops > 0 {
            ways.push("continue;".into());
        }
        for label in 0..self.labels {
            ways.push(format!("{{ if ((*fuel)-- == 0) return d; goto L{label}; }}"));
        }
        let which = self.below(ways.len());
        let condition = self.condition();
        self.line(depth, &format!("if ({condition}) {}", ways[which]));
    }

    fn call(&mut self, depth: usize) {
        if self.number == 0 {
            return self.assignment(depth);
        }
        let (callee, to) = (self.below(self.number), self.variable());
        let (x, y) = (self.value(), self.value());
        self.line(depth, "if ((*fuel)-- == 0) return c;");
        self.line(depth, &format!("{to} += f{callee}({x}, {y}, fuel);"));
    }

    fn a_loop(&mut self, depth: usize) {
        let condition = self.condition();
        let kind = self.below(3);
        let head = match kind {
            0 => format!("while ({condition}) {{"),
            1 => "do {".to_string(),
            _ => {
                let (name, bound) = (format!("i{depth}"), 1 + self.below(9));
                format!("for ({name} = {} & 3; {name} < {bound}; {name}++) {{", self.variable())
            }
        };
        self.line(depth, &head);
        self.line(depth + 1, "if ((*fuel)-- == 0) return a;");
        self.loops += 1;
        self.breakable += 1;
        self.nested(depth);
        self.loops -= 1;
        self.breakable -= 1;
        self.line(depth, &if kind == 1 { format!("}} while ({condition});") } else { "}".to_string() });
    }

    fn switch(&mut self, depth: usize) {
        let (value, cases) = (self.value(), 2 + self.below(7));
        let mask = [3, 7, 15][self.below(3)];
        self.line(depth, &format!("switch (({value}) & {mask}) {{"));
        self.breakable += 1;
        for case in 0..cases {
            self.line(depth, &format!("case {case}:"));
            self.nested(depth);
            if self.below(4) > 0 {
                self.line(depth + 1, "break;");
            }
        }
        if self.below(2) == 0 {
            self.line(depth, "default:");
            self.nested(depth);
            self.line(depth + 1, ";");
        }
        self.breakable -= 1;
        self.line(depth, "}");
    }

    fn variable(&mut self) -> &'static str {
        ["a", "b", "c", "d", "e"][self.below(5)]
    }

    fn value(&mut self) -> String {
        let (x, y) = (self.variable(), self.variable());
        match self.below(9) {
            0 => x.to_string(),
            1 => self.below(1000).to_string(),
            2 => format!("{x} + {y}"),
            3 => format!("{x} * {y} + 1"),
            4 => format!("({x} >> ({y} & 31))"),
            5 => format!("({x} ^ {y})"),
            6 => format!("m[{x} & 7]"),
            7 => format!("({x} / ({y} | 1))"),
            _ => format!("({x} - {})", self.below(50)),
        }
    }

    fn condition(&mut self) -> String {
        let (x, n) = (self.value(), self.below(64));
        match self.below(7) {
            0 => format!("({x}) & 1"),
            1 => format!("(({x}) & 63) < {n}"),
            2 => format!("(int32_t)({x}) < (int32_t)({})", self.value()),
            3 => format!("(({x}) & 15) == {}", n & 15),
            4 => format!("(({x}) & 7) != (({}) & 7)", self.value()),
            5 => format!("(({x}) & 3) && (({}) & 5) != 4", self.value()),
            _ => format!("({x}) > 0x40000000u || ({} & 9) == 1", self.variable()),
        }
    }
}
