"""Answers of the usual forms, judged once before a grading process is copied.

Each pair is a gold answer and another spelling that needs algebra. The LaTeX grammar builds its
tables as it meets new forms; a copy that finds them built grades many times faster.
"""

from __future__ import annotations

WARM_UP: tuple[tuple[str, str], ...] = (
    (r"2\sqrt{2}", r"\sqrt{8}"),
    (r"\frac{1}{x+1}", r"\frac{x-1}{x^2-1}"),
    (r"-\frac{3\sqrt{5}}{7}", r"-3\cdot\frac{\sqrt{5}}{7}"),
    (r"\frac{\pi}{4} + k\pi", r"\pi\left(k+\frac14\right)"),
    (r"x^{2}-3x+2", r"(x-1)(x-2)"),
    (r"2^{n+1}-1", r"2\cdot 2^{n} - 1"),
    (r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}"),
    (r"\left(3, \frac{\pi}{2}\right)", r"(3, \frac{2\pi}{4})"),
    (r"\sin^2 x", r"1-\cos^2 x"),
    (r"\tan 2\theta", r"\frac{2\tan\theta}{1-\tan^{2}\theta}"),
    (r"e^{2x}", r"(e^{x})^{2}"),
    (r"\ln 6", r"\ln 2+\ln 3"),
    (r"\log_{2} 10", r"1+\log_2 5"),
    (r"3+4i", r"4i+3"),
    (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
    (r"n!", r"n\cdot(n-1)!"),
    (r"[0, \infty)", r"\left[0,\infty\right)"),
    (r"(-\infty,-2]\cup[3,\infty)", r"[3,\infty)\cup(-\infty,-2]"),
    (r"\{1, \sqrt{2}, 3\}", r"\left\{3, 1, \frac{2}{\sqrt{2}}\right\}"),
    (r"\begin{pmatrix} 1 & \sqrt{4} \\ 3 & 4 \end{pmatrix}",
     r"\begin{pmatrix} 1 & 2 \\ 3 & \frac{8}{2} \end{pmatrix}"),
    (r"y = 2x + 3", r"y-3=2x"),
    (r"x \geq \sqrt{2}", r"\sqrt{2}\le x"),
    (r"1 < x < 2\sqrt{3}", r"1<x<\sqrt{12}"),
    (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"),
    (r"\frac{a^{2}+b^{2}}{2ab}", r"\frac{a}{2b}+\frac{b}{2a}"),
    (r"|x-1|", r"|1-x|"),
    (r"1 \pm \sqrt{19}", r"1\pm\frac{\sqrt{76}}{2}"),
    (r"\frac{1}{2}\sqrt{3}\text{ cm}^2", r"\frac{\sqrt{3}}{2}"),
    (r"30^\circ + x", r"x+30^{\circ}"),
    (r"f(x)=x^3-x", r"f(x)=x(x-1)(x+1)"),
    (r"\lfloor \frac{n}{2} \rfloor", r"\left\lfloor \frac n2 \right\rfloor"),
    (r"x_{1}+x_{2}", r"x_2+x_1"),
    (r"\sqrt{\frac{a+b}{2}}", r"\frac{\sqrt{2a+2b}}{2}"),
    (r"\frac{\frac{1}{2}+x}{3}", r"\frac{1+2x}{6}"),
    (r"0.25x", r"\frac{x}{4}"),
    (r"\alpha \beta + \mu", r"\mu + \beta \alpha"),
    (r"\frac{3(2x+1)}{3}", r"2x+1"),
    (r"\cos\frac{\pi}{9}", r"\cos 20^\circ"),
    (r"x=3, y=\sqrt{8}", r"y=2\sqrt{2}, x=3"),
)  # fmt: skip
