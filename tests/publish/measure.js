function look(frame) {
  const page = frame.contentDocument, wide = page.documentElement.clientWidth, wrong = [];
  const box = e => e.getBoundingClientRect(), style = page.defaultView.getComputedStyle;
  for (const e of page.body.querySelectorAll('*'))
    if (box(e).width && (box(e).right > wide + 1 || box(e).left < -1)) wrong.push(e.outerHTML);
  for (const svg of page.querySelectorAll('svg')) {
    const words = [...svg.querySelectorAll('text')];
    words.forEach((e, i) => {
      const a = box(e);
      if (a.bottom > box(svg).bottom || parseFloat(style(e).fontSize) < 12) wrong.push(e.outerHTML);
      for (const other of words.slice(0, i)) {
        const b = box(other), across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) wrong.push(e.outerHTML + other.outerHTML);
      }
    });
  }
  return [page.documentElement.scrollWidth - wide, wrong, page.querySelectorAll('svg').length,
          style(page.body).color, style(page.body).backgroundColor];
}
onload = () => document.body.textContent = 'BEGIN' +
  JSON.stringify([...document.querySelectorAll('iframe')].map(look)) + 'END';
