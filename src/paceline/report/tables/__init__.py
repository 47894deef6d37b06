"""Tables about one subject each, as page, terminal and notebook print them."""
