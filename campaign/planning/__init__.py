"""From a configuration to the ordered boots, the looks and the registered claims, and what they could see."""
