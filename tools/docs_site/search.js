// Pages whose text contains all words of the query; words in titles and headings count most.
const pages = JSON.parse(document.getElementById("pages").textContent);
const query = new URLSearchParams(location.search).get("q") || "";
const words = query.toLowerCase().split(/\s+/).filter(Boolean);
const count = (text, word) => text.toLowerCase().split(word).length - 1;
const score = (page) => words.reduce((sum, word) => {
  const found = 20 * count(page.title, word) + 5 * count(page.headings, word) + count(page.text, word);
  return found ? sum + found : Number.NEGATIVE_INFINITY;
}, 0);
const excerpt = (page) => {
  const at = Math.max(0, page.text.toLowerCase().indexOf(words[0]));
  return `${at > 60 ? "… " : ""}${page.text.slice(Math.max(0, at - 60), at + 180)} …`;
};
const found = words.length ? pages.map((page) => [score(page), page]).filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]) : [];
for (const input of document.querySelectorAll("input[name=q]")) input.value = query;
document.getElementById("count").textContent = words.length ? `${found.length} ${found.length === 1 ? "page" : "pages"} with "${query}"` : "Enter words to search for.";
document.getElementById("found").append(...found.slice(0, 30).map(([, page]) => {
  const [item, link, text] = ["li", "a", "p"].map((tag) => document.createElement(tag));
  link.href = page.name;
  link.textContent = page.title;
  text.textContent = excerpt(page);
  item.append(link, text);
  return item;
}));
